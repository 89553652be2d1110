package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"mcpagents/internal/mcp/stdio"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gate is a writer that lets nothing through until it is opened.
type gate struct {
	open chan struct{}
	mu   sync.Mutex
	buf  bytes.Buffer
}

func newGate() *gate { return &gate{open: make(chan struct{})} }

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.buf.Write(p)
}

func (g *gate) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.buf.String()
}

func flushed(t *testing.T, o *Output, g *gate) string {
	t.Helper()
	close(g.open)
	require.NoError(t, o.Flush(t.Context()))
	<-o.Close()
	return g.String()
}

func TestOutputKeepsOrderAndBoundaries(t *testing.T) {
	g := newGate()
	o := NewOutput(g)
	require.NoError(t, o.Native(line("one\n"), false))
	require.NoError(t, o.Own([]byte("own1"), false, nil))
	require.NoError(t, o.Native(Piece{Data: []byte("tw"), First: true}, false))
	require.NoError(t, o.Own([]byte("own2"), false, nil))
	require.NoError(t, o.Own([]byte("own3"), true, nil))
	require.NoError(t, o.Native(Piece{Data: []byte("o\n"), Last: true}, false))
	require.NoError(t, o.Native(line("three\n"), false))
	assert.Equal(t, "one\nown1\ntwo\nown2\nContent-Length: 4\r\n\r\nown3three\n", flushed(t, o, g))
}

func TestOutputFinish(t *testing.T) {
	half := Piece{Data: []byte("half"), First: true, Cut: true}
	tests := []struct {
		name   string
		framed bool
		own    bool
		want   string
	}{
		{"half a line stays as it is", false, false, "half"},
		{"a message of ours gets a boundary", false, true, "half\nown\n"},
		{"a frame leaves with what came", true, true, "own\nContent-Length: 4\r\n\r\nhalf"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := newGate()
			o := NewOutput(g)
			require.NoError(t, o.Native(half, tt.framed))
			if tt.own {
				require.NoError(t, o.Own([]byte("own"), false, nil))
			}
			o.Finish()
			assert.Equal(t, tt.want, flushed(t, o, g))
		})
	}
}

func TestOutputFrames(t *testing.T) {
	g := newGate()
	o := NewOutput(g)
	require.NoError(t, o.Native(line("{\"é\":1}\r\n"), true))
	require.NoError(t, o.Native(line("\n"), true), "a blank line is no message")
	require.NoError(t, o.Native(Piece{Data: []byte("a"), First: true}, true))
	require.NoError(t, o.Own([]byte("own"), false, nil), "a line on its way into a frame is no half message")
	require.NoError(t, o.Native(Piece{Data: []byte("b\n"), Last: true}, false), "the first piece has decided")
	assert.Equal(t, "Content-Length: 9\r\n\r\n{\"é\":1}\rown\nContent-Length: 2\r\n\r\nab", flushed(t, o, g))
}

func TestOutputRefusesLineTooLongToFrame(t *testing.T) {
	g := newGate()
	o := NewOutput(g)
	part := bytes.Repeat([]byte("x"), MaxFramed/2+1)
	require.NoError(t, o.Native(Piece{Data: part, First: true}, true))
	require.ErrorIs(t, o.Native(Piece{Data: part}, true), ErrLineTooLong)
	require.NoError(t, o.Native(Piece{Data: []byte("rest\n"), Last: true}, true), "said once")
	require.NoError(t, o.Native(line("next\n"), true))
	assert.Equal(t, "Content-Length: 4\r\n\r\nnext", flushed(t, o, g))
}

func TestOutputDrop(t *testing.T) {
	g := newGate()
	o := NewOutput(g)
	require.NoError(t, o.Own([]byte("handed over"), false, "a"))
	require.NoError(t, o.Own([]byte("queued"), false, "b"))
	require.NoError(t, o.Native(Piece{Data: []byte("x"), First: true}, false))
	require.NoError(t, o.Own([]byte("deferred"), false, "c"))
	assert.False(t, o.Drop("a"), "the writing goroutine has it")
	assert.True(t, o.Drop("b"))
	assert.True(t, o.Drop("c"))
	assert.False(t, o.Drop("b"), "once")
	require.NoError(t, o.Native(Piece{Data: []byte("\n"), Last: true}, false))
	assert.Equal(t, "handed over\nx\n", flushed(t, o, g))
}

func TestOutputIsBoundedForClientThatDoesNotRead(t *testing.T) {
	g := newGate()
	o := NewOutput(g)
	assert.False(t, o.Full())
	require.NoError(t, o.Native(line(strings.Repeat("x", HighWater-1)+"\n"), false))
	assert.True(t, o.Full(), "the child must not be read")

	body := bytes.Repeat([]byte("y"), 1<<20-1)
	for range MaxOwn >> 20 {
		require.NoError(t, o.Own(body, false, "y"))
	}
	assert.ErrorIs(t, o.Own(body, false, "y"), ErrClientNotReading)
	assert.True(t, o.Drop("y"))
	require.NoError(t, o.Own(body, false, "y"), "what is withdrawn does not count")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, o.Flush(ctx), context.Canceled)
	done := o.Close()
	close(g.open)
	<-done
}

func TestOutputReportsClosedClient(t *testing.T) {
	for _, cause := range []error{syscall.EPIPE, io.ErrClosedPipe} {
		o := NewOutput(failing{cause})
		require.NoError(t, o.Native(line("a\n"), false))
		err := <-o.Results()
		o.Wrote(err)
		require.ErrorIs(t, err, stdio.ErrOutputClosed)
		require.NoError(t, o.Native(line("b\n"), false), "dropped")
		require.NoError(t, o.Flush(t.Context()), "nothing waits any more")
		<-o.Close()
	}
	o := NewOutput(failing{errors.New("disk full")})
	require.NoError(t, o.Native(line("a\n"), false))
	err := o.Flush(t.Context())
	assert.ErrorContains(t, err, "disk full")
	assert.NotErrorIs(t, err, stdio.ErrOutputClosed)
	<-o.Close()
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
