package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"mcpagents/internal/mcp/stdio"
)

// Bounds of what waits for a client that does not read, in bytes.
const (
	// HighWater is where reading from the child stops. One line may exceed it.
	HighWater = 1 << 20
	// MaxOwn bounds the frames of our own. A client that leaves more unread
	// while it asks for more is not going to read.
	MaxOwn = 16 << 20
	// MaxFramed is the longest native line that is held to learn the length
	// that a Content-Length header must state.
	MaxFramed = 16 << 20
)

// Errors of an Output that no write has caused.
var (
	// ErrClientNotReading says that frames of our own exceed MaxOwn.
	ErrClientNotReading = errors.New("client does not read its answers: more than 16 MiB of them wait")
	// ErrLineTooLong says that a native line cannot be framed.
	ErrLineTooLong = errors.New("line of more than 16 MiB cannot be sent with a Content-Length header")
)

// Output queues what goes to the client. Native pieces keep their order and
// their bytes; frames of our own wait until no native line is half written. All
// methods belong to one goroutine.
type Output struct {
	pump     *pump
	midLine  bool     // a native line has begun in the queue and not ended
	deferred []buffer // messages of ours that wait for that line's end
	framing  bool     // the native line at hand gets a header
	skipping bool     // ... and has proved too long
	line     []byte   // what has come of it

	deferredBytes int
}

// NewOutput returns an Output that writes to w from a goroutine of its own.
// Errors of a client that went away wrap stdio.ErrOutputClosed.
func NewOutput(w io.Writer) *Output {
	out := stdio.NewWriter(w)
	write := func(b []byte) error {
		return out.Stream(func(w io.Writer) error { _, err := w.Write(b); return err })
	}
	return &Output{pump: newPump(write, nil)}
}

// Native queues a piece of the child's output, which must not be changed
// afterwards. With framed, a line leaves behind a Content-Length header and
// without its LF; the first piece of a line decides. ErrLineTooLong comes once
// for a line that cannot be framed, and the rest of it is dropped.
func (o *Output) Native(p Piece, framed bool) error {
	if p.First {
		o.framing, o.skipping = framed, false
	}
	if o.framing {
		return o.frame(p)
	}
	o.pump.push(buffer{data: p.Data})
	o.midLine = !p.Last
	o.release()
	return nil
}

// frame collects the line of p and queues it when it is complete.
func (o *Output) frame(p Piece) error {
	if o.skipping {
		return nil
	}
	if len(o.line)+len(p.Data) > MaxFramed {
		o.line, o.skipping = nil, true
		return ErrLineTooLong
	}
	o.line = append(o.line, p.Data...)
	if p.Last {
		o.endLine()
	}
	return nil
}

func (o *Output) endLine() {
	body := o.line
	if n := len(body); n > 0 && body[n-1] == '\n' {
		body = body[:n-1]
	}
	o.line = nil
	if len(body) > 0 { // a blank line says nothing, and a frame of no bytes is not a message
		o.pump.push(buffer{data: Encode(body, true)})
	}
}

// Finish ends a native line that the child will not end any more, if messages
// of ours wait behind it. A line on its way into a frame leaves as it is.
func (o *Output) Finish() {
	if len(o.line) > 0 {
		o.endLine()
	}
	if len(o.deferred) > 0 {
		o.pump.push(buffer{data: []byte{'\n'}})
		o.midLine = false
		o.release()
	}
}

// Own queues a message of ours. A tag other than nil, which must be comparable,
// lets Drop withdraw it.
func (o *Output) Own(body []byte, framed bool, tag any) error {
	b := buffer{data: Encode(body, framed), tag: tag, own: true}
	if o.deferredBytes+o.pump.own+len(b.data) > MaxOwn {
		return ErrClientNotReading
	}
	if o.midLine {
		o.deferred = append(o.deferred, b)
		o.deferredBytes += len(b.data)
		return nil
	}
	o.pump.push(b)
	return nil
}

// release queues the messages of ours that waited for a line's end.
func (o *Output) release() {
	if o.midLine {
		return
	}
	for _, b := range o.deferred {
		o.pump.push(b)
	}
	o.deferred, o.deferredBytes = nil, 0
}

// Drop withdraws the messages of ours with the tag that the writing goroutine
// has not got yet, and reports whether there were any.
func (o *Output) Drop(tag any) bool {
	n := len(o.deferred)
	o.deferred = slices.DeleteFunc(o.deferred, func(b buffer) bool {
		if b.tag == tag {
			o.deferredBytes -= len(b.data)
		}
		return b.tag == tag
	})
	return o.pump.drop(tag) || len(o.deferred) < n
}

// Full reports whether so much waits that the child should not be read.
func (o *Output) Full() bool { return o.pump.bytes >= HighWater }

// Results delivers the outcome of each write; every value must be given to Wrote.
func (o *Output) Results() <-chan error { return o.pump.results }

// Wrote takes a value from Results. After an error nothing more is written.
func (o *Output) Wrote(err error) { o.pump.wrote(err) }

// Flush writes what is queued and returns when it is written, a write failed
// or ctx ended. What is deferred behind an unfinished line stays.
func (o *Output) Flush(ctx context.Context) error {
	for !o.pump.idle() {
		select {
		case err := <-o.pump.results:
			if o.pump.wrote(err); err != nil {
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("client left %d bytes unread: %w", o.pump.bytes, ctx.Err())
		}
	}
	return nil
}

// Close drops what is queued and tells the writing goroutine to end. It returns
// a channel that is closed when it has: at once, unless a write is under way to
// a client that does not read.
func (o *Output) Close() <-chan struct{} {
	o.pump.stop()
	return o.pump.done
}

// Encode returns body as it goes over the wire: with a Content-Length header,
// or as a line.
func Encode(body []byte, framed bool) []byte {
	b := make([]byte, 0, len(body)+32)
	if framed {
		return append(fmt.Appendf(b, "Content-Length: %d\r\n\r\n", len(body)), body...)
	}
	return append(append(b, body...), '\n')
}
