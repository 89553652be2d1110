// Package stdio speaks JSON-RPC 2.0 over one pair of byte streams.
//
// A [Reader] cuts the input into messages, a [Writer] puts messages on the
// output without mixing them, [ParseEnvelope] looks at a message without
// touching its bytes, and a [Server] ties the three to a handler. The pieces
// stand alone: a bridge that forwards native messages uses Reader and Writer
// and never parses what it does not have to.
//
// # Framing
//
// Two framings exist on one stream and are told apart message by message. A
// message that begins with "Content-Length:" or "Content-Type:", in any case,
// is a header block, a blank line and a body of that many bytes ([Framed]);
// anything else is one line that ends with a line feed ([Line]). An answer
// leaves in the framing of its request; what answers nothing leaves in the
// framing of the client's latest message, and as a line before the first.
//
// # What one bad message costs
//
// Exactly itself. A message over the limit, a header without a usable length
// and text that is not JSON are each reported as a [MessageError], and reading
// goes on with the next message in bounded memory, because clients do not
// restart a server on stdio.
//
// # Identity of requests
//
// Ids are kept as the bytes that the client wrote. Decoding them would round
// 9007199254740993, turn 1e20 into an overflow and make 1 and "1" equal, and a
// cancel would then hit the wrong request.
//
// # Broken pipes
//
// A Go program that writes to a broken pipe on descriptor 1 dies of SIGPIPE
// unless it asked for that signal. A main that serves on its standard output
// calls [CatchBrokenPipe] first, so that the write returns [ErrOutputClosed]
// and cleanup runs.
package stdio
