package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/stdio"
)

// ClientEvent is a message of the client, the fault of one (Err is a
// *mcp.MessageError), or the end of its input (any other Err).
type ClientEvent struct {
	Message mcp.Message
	Err     error
}

// ReadClient gives every message of in to events, until its end or that of ctx.
// A maxMessage of 0 is stdio's default.
func ReadClient(ctx context.Context, in io.Reader, maxMessage int, events chan<- ClientEvent) {
	r := stdio.NewReader(in, stdio.ReaderOptions{MaxMessage: maxMessage, KeepBlank: true})
	for {
		m, err := r.Next()
		if !Send(ctx, events, ClientEvent{m, err}) {
			return
		}
		if _, one := errors.AsType[*mcp.MessageError](err); err != nil && !one {
			return
		}
	}
}

// Send gives v to an event loop and reports whether it did before ctx ended.
func Send[T any](ctx context.Context, to chan<- T, v T) bool {
	select {
	case to <- v:
		return true
	case <-ctx.Done():
		return false
	}
}

// closeGrace is how long a read or write that nothing interrupts is waited for
// at the end. A process's own stdin and stdout can be such: what then remains
// is one system call, and the process is about to end.
const closeGrace = 50 * time.Millisecond

// Abandon waits for done, helped by closing c if that is an io.Closer, and gives
// up after a moment. It closes c in any case: who writes into a pipe that nobody
// reads any more must not wait.
func Abandon(done <-chan struct{}, c any) {
	closer, ok := c.(io.Closer)
	select {
	case <-done:
		if ok {
			_ = closer.Close()
		}
		return
	default:
	}
	if ok {
		go closer.Close() // may itself wait for the read
	}
	select {
	case <-done:
	case <-time.After(closeGrace):
	}
}

// Line returns raw, which is m or made of it, as the line that a child reads: as
// it came, but for line breaks inside a frame, which JSON has only between
// tokens. A last line without a line feed stays so.
func Line(m mcp.Message, raw []byte) []byte {
	if m.Mode == mcp.Framed && bytes.ContainsAny(raw, "\r\n") {
		raw = bytes.ReplaceAll(bytes.ReplaceAll(raw, []byte{'\r'}, []byte{' '}), []byte{'\n'}, []byte{' '})
	}
	if !m.Terminated {
		return raw
	}
	return append(raw[:len(raw):len(raw)], '\n')
}

// WholeLine is m as a line that others can follow.
func WholeLine(m mcp.Message) []byte {
	m.Terminated = true
	return Line(m, m.Raw)
}
