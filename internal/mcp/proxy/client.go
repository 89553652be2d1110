package proxy

import (
	"context"
	"io"

	"mcpagents/internal/mcp/stdio"
)

// Client reads the client of a session. A client that hangs, or whose wrapper
// holds the pipes open, vanishes without an end of its messages: Died reports
// that, where a watchdog is configured.
type Client struct {
	Messages <-chan ClientEvent
	Died     <-chan struct{} // closed when the client's process has ended

	in       io.Reader
	stop     context.CancelFunc
	read     chan struct{} // closed when nothing reads any more
	watching chan struct{} // closed when nothing watches any more
}

// NewClient begins to read the client's messages, each of at most maxMessage bytes
// (0 means stdio's default), and to watch its process.
func NewClient(in io.Reader, maxMessage int, dog stdio.Watchdog) *Client {
	ctx, stop := context.WithCancel(context.Background())
	messages, died := make(chan ClientEvent), make(chan struct{})
	c := &Client{Messages: messages, Died: died, in: in, stop: stop, read: make(chan struct{}), watching: make(chan struct{})}
	go func() {
		defer close(c.read)
		ReadClient(ctx, in, maxMessage, messages)
	}()
	go func() {
		defer close(c.watching)
		if dog.Wait(ctx) {
			close(died)
		}
	}()
	return c
}

// Close ends both. It closes the input, if that is an io.Closer, and gives a read
// that nothing interrupts only a moment.
func (c *Client) Close() {
	c.stop()
	<-c.watching
	Abandon(c.read, c.in)
}
