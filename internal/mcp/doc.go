// Package mcp defines the messages of JSON-RPC 2.0, as MCP uses them, and the
// connection that carries them.
//
// A message is parsed once, when it is read: its [Envelope] tells the id, the
// method and the parts of the top level, and its bytes stay as their sender
// wrote them. What needs more of a message, or changes a part of it, uses
// [Lookup], [Members] and [Splice], which leave every other byte alone.
//
// # Identity of requests
//
// Ids are kept as the bytes that the client wrote. Decoding them would round
// 9007199254740993, turn 1e20 into an overflow and make 1 and "1" equal, and a
// cancel would then hit the wrong request.
package mcp
