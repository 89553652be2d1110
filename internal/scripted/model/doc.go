// Package model is the scripted model: a loopback HTTP server that answers an
// agent CLI as a model vendor's streaming API would, from a script instead of
// a network. Demos and tests run real CLIs against it, offline.
//
// A [Scenario] is a list of [Step] values as data. The step of a request is
// found in the conversation that the request itself carries, never in the
// server, so one server serves any number of sandboxes at once and a repeated
// request gets the same answer. Directives in a prompt (see [ParseDirectives])
// win over the scenario.
//
// The package has three layers: scripts (step.go, scenario.go, directive.go,
// conversation.go), which know no API; the APIs (responses*.go: the OpenAI
// Responses stream, messages*.go: the Anthropic Messages stream), which reduce
// a request to a conversation and play a step as events; and the server
// (server.go, stats.go, requestlog.go). A further API joins as one more pair of
// files and one more case in [Server.route].
package model
