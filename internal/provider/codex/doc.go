// Package codex puts codex mcp-server behind an MCP client. Codex speaks MCP
// itself, so its frames pass byte for byte; only what is named here is ours.
//
//   - tools/list shows the two native tools with our descriptions and closed
//     argument lists, and calls of them are validated and translated. Seven
//     tools of ours follow: background jobs, and a look at what runs.
//   - A request that goes silent or takes too long fails alone; Codex is told to
//     stop, and what it answers later is dropped. So is what it answers to a
//     call that the client cancelled. Turns that may go on are counted.
//   - While a turn runs, a client that gave a token is told what it does, from a
//     list of texts that hold nothing of prompts, commands or answers.
//   - A turn whose end was reported and whose answer does not come is answered
//     from the report.
//   - Once Codex says that its login is not valid, no further turn is started.
//   - A Codex that cannot be started, or does not answer in time, never ends
//     the handshake: initialize, tools/list and ping are then answered here,
//     calls become tool errors that name the remedy, and the next call tries
//     to start it again.
//   - A Codex that dies after its initialize ends the bridge. It is not started
//     again within one connection, because its threads are gone.
//
// state.go is the life of a request on one page: its states, what can happen in
// each, and what follows. A half-written line of Codex matters to it, because
// the line may be the very answer: lines are passed on only when whole (up to
// 10 MiB), but what is said about a turn waits for their ends, and a line that
// never ends ends the bridge. The packages turn and job hold what does not
// depend on native frames.
//
// One goroutine, the event loop of Run, owns all state of a bridge. Goroutines
// that read, write, launch and wait hand it events and are waited for.
//
// Codex's stderr may hold what the model wrote. It is logged at debug level
// only, and its last 4 KiB are kept for the error that a caller gets when Codex
// ends before it has answered initialize; until then no model has run.
package codex
