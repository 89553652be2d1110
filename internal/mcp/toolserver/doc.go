// Package toolserver serves a list of tools over MCP on one pair of byte
// streams. It is the protocol side of every provider whose tools are ours; what
// a tool does is its own business.
//
// # Why not the SDK's server
//
// The five messages that such a server needs (initialize,
// notifications/initialized, ping, tools/list, tools/call) are answered here
// directly on package stdio. The official SDK's server would fit behind an
// adapter, but most of that adapter would undo what the SDK decides: it decodes
// ids (1.5 becomes 1, those above 2^53 are rounded), refuses calls before
// initialize, sorts tools, answers cancelled requests, ends the session on one
// line that is not JSON and drops owed answers at the end of the input. Id
// translation, a made-up initialize, a filter for answers and a gate on the end
// of the input are more code than the five answers, with two owners of each
// request's state. The SDK stays for HTTP, where it owns the transport, and as
// the client that the tests use.
//
// # Rules
//
//   - A request is known by the exact bytes of its id from arrival until its
//     answer is queued or it is cancelled. A second one with that id meanwhile
//     is refused; afterwards the id is free.
//   - A cancelled request gets no answer and no error. Cancelling one that is
//     unknown, finished or an initialize does nothing.
//   - Progress is sent only under a token of the caller, at most once a second
//     and never after the answer was queued. Of a cancelled call at most the
//     one frame that the output already has is still written.
//   - A tool that panics or returns an error has answered: with a result that
//     is marked as an error. Clients do not restart a server on stdio.
//   - Nothing waits for an output that is stuck except what must be written to
//     it. Progress is replaced by later progress; answers are never dropped.
package toolserver
