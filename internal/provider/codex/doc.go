// Package codex puts codex mcp-server behind an MCP client. Codex speaks MCP
// itself, so its frames pass byte for byte; only what is named here is ours.
//
//   - tools/list shows the two native tools with our descriptions and closed
//     argument lists, and calls of them are validated and translated.
//   - A Codex that cannot be started, or does not answer in time, never ends
//     the handshake: initialize, tools/list and ping are then answered here,
//     calls become tool errors that name the remedy, and the next call tries
//     to start it again.
//   - A Codex that dies after its initialize ends the bridge. It is not started
//     again within one connection, because its threads are gone.
//
// One goroutine, the event loop of Run, owns all state of a bridge. Goroutines
// that read, write, launch and wait hand it events and are waited for.
//
// Codex's stderr may hold what the model wrote. It is logged at debug level
// only, and its last 4 KiB are kept for the error that a caller gets when Codex
// ends before it has answered initialize; until then no model has run.
package codex
