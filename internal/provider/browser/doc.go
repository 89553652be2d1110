// Package browser puts chrome-devtools-mcp, the downstream, between an MCP
// client and a borrowed browser. The downstream speaks MCP itself, so its frames
// pass byte for byte; only what is named here is ours.
//
//   - The downstream starts at once. A browser is borrowed when the first tool
//     of the downstream is called, and given back when none was used for a while.
//   - While a browser is being got, or is being looked at, everything of the
//     client waits in line, so that nothing overtakes. Callers that gave a token
//     are told that they wait.
//   - A browser call reaches the downstream only when the browser is the one
//     that was lent, and its result reaches the client only when it still is.
//     Whatever cannot be verified is answered as a lost browser, and nothing is
//     ever sent twice: a call may have changed something.
//   - A call that takes too long may hold the downstream for good. It is then
//     started anew on the same browser, with the client's own initialize.
//   - A downstream that cannot be started never ends the handshake: initialize,
//     tools/list and ping are answered here, calls say what to do, and the next
//     call tries again. One that dies after its initialize ends the bridge.
//
// state.go is the life of a lease on one page. One goroutine, the event loop of
// Run, owns all state; goroutines that read, write, start and ask hand it events
// and are waited for.
package browser
