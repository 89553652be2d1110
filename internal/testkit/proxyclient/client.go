// Package proxyclient is the client of a bridge in memory, on the clock of a
// synctest bubble.
package proxyclient

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/mcp/stdio"
	"mcpagents/internal/testkit/frontend"
)

// Client is a client with a bridge under test.
type Client struct {
	*testing.T
	In     *io.PipeWriter
	Out    *io.PipeReader // for those who do not Read
	Cancel context.CancelCauseFunc
	Code   chan int         // the exit status of the bridge, once
	Log    *frontend.Buffer // of the bridge, from level info
	Tasks  sync.WaitGroup   // of the client, waited for at the end

	mu   sync.Mutex // of got
	got  bytes.Buffer
	gate chan struct{} // full: the client does not read
}

// Start runs a bridge in a goroutine. It must be called in a synctest bubble.
func Start(t *testing.T, run func(ctx context.Context, log *slog.Logger, in io.Reader, out io.Writer) int) *Client {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &Client{T: t, In: inW, Out: outR, Code: make(chan int, 1), Log: &frontend.Buffer{}, gate: make(chan struct{}, 1)}
	var ctx context.Context
	ctx, c.Cancel = context.WithCancelCause(context.Background())
	t.Cleanup(func() { // after a failed assertion; otherwise everything has ended
		c.Cancel(stdio.Signal(9))
		c.Close()
	})
	log := slog.New(slog.NewTextHandler(c.Log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	go func() {
		code := run(ctx, log, inR, outW)
		outW.Close()
		c.Code <- code
	}()
	return c
}

// Read begins to collect what the bridge writes.
func (c *Client) Read() {
	c.Tasks.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := c.Out.Read(buf)
			c.gate <- struct{}{}
			c.mu.Lock()
			c.got.Write(buf[:n])
			c.mu.Unlock()
			<-c.gate
			if err != nil {
				return
			}
		}
	})
}

// Pause makes the client stop reading, but for what it is about to read, until
// Resume.
func (c *Client) Pause() { c.gate <- struct{}{} }

func (c *Client) Resume() { <-c.gate; synctest.Wait() }

// Send writes lines and waits until everybody has done with them.
func (c *Client) Send(lines ...string) {
	c.Helper()
	_, err := io.WriteString(c.In, strings.Join(lines, "\n")+"\n")
	require.NoError(c, err)
	synctest.Wait()
}

// Output returns everything that came since the last call.
func (c *Client) Output() string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.got.String()
	c.got.Reset()
	return out
}

// Expect asserts what came since the last call, line by line.
func (c *Client) Expect(lines ...string) {
	c.Helper()
	want := ""
	for _, l := range lines {
		want += strings.TrimSuffix(l, "\n") + "\n"
	}
	require.Equal(c, want, c.Output())
}

// Disconnect ends the client's messages.
func (c *Client) Disconnect() { c.In.Close(); synctest.Wait() }

// Close closes the client's ends and waits for its tasks.
func (c *Client) Close() {
	c.In.Close()
	c.Out.Close()
	c.Tasks.Wait()
}
