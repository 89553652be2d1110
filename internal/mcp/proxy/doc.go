// Package proxy stands between an MCP client and a child that speaks MCP itself,
// and moves their frames byte for byte in both directions. Messages of our own
// go only where one message has ended and the next has not begun.
//
// A [Session] is one connection. Its event loop, one goroutine, owns all state:
//
//   - the client's side (from_client.go, requests.go): what came, which requests
//     are open, which answers the child still owes, idle and vanished clients;
//   - the queue of what waits for the child (queue.go);
//   - the handshake (handshake.go): initialize and tools/list are answered here
//     when the child does not, kept, and replayed to the next child;
//   - the child (link.go): its launch, its [Phase], its end;
//   - deadlines (alarm.go), outcome and shutdown (session.go, end.go).
//
// What differs between providers is a [Policy]; [Defaults] is the policy that
// only passes messages on, and every provider starts from it.
//
// Below the loop, goroutines only read or write, so that it never waits for
// either end: a [Client] reads the client, a [Run] is one process with its
// streams, a [Splitter] cuts its output into lines, an [Input] and an [Output]
// queue what goes to child and client.
package proxy
