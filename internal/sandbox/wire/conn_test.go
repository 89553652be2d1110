package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// gate is a writer that holds its first write until it is opened.
type gate struct {
	open   chan struct{}
	inside chan struct{}
	once   sync.Once
	bytes.Buffer
}

func newGate() *gate { return &gate{open: make(chan struct{}), inside: make(chan struct{})} }

func (g *gate) Write(p []byte) (int, error) {
	g.once.Do(func() { close(g.inside) })
	<-g.open
	return g.Buffer.Write(p)
}

func sent(t *testing.T, b []byte) string {
	var names []string
	r := NewReader(bytes.NewReader(b))
	for {
		f, err := r.Next()
		if err == io.EOF {
			return strings.Join(names, " ")
		}
		require.NoError(t, err)
		names = append(names, f.Type.String())
	}
}

// Control overtakes data; data, end, exit and spawn keep their order.
func TestOrder(t *testing.T) {
	g := newGate()
	c := NewConn(nil, g)
	require.NoError(t, c.Send(Frame{Type: TypeCredit, Payload: AppendUint32(1)}))
	<-g.inside // the writer holds the first frame; the rest queues
	for _, ty := range []Type{TypeData, TypeEOF, TypePing, TypeExit, TypeSpawn, TypeData, TypeSignal, TypeBye} {
		require.NoError(t, c.Send(Frame{Type: ty}))
	}
	close(g.open)
	require.NoError(t, c.Close())
	require.Equal(t, "credit ping signal bye data eof exit spawn data", sent(t, g.Bytes()))
}

// Send never waits: it takes what the protocol allows, then gives the peer up.
func TestPeerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pr, pw := io.Pipe()
		c := NewConn(nil, pw)
		file := Frame{Type: TypeFile, Payload: make([]byte, MaxControl)}
		n := 0
		var err error
		for ; err == nil; n++ {
			err = c.Send(file)
		}
		require.ErrorIs(t, err, ErrNotReading)
		require.GreaterOrEqual(t, n, maxQueued/MaxControl)
		require.LessOrEqual(t, len(c.control)+len(c.ordered), maxQueued+HeaderSize*n)
		require.ErrorIs(t, c.Send(Frame{Type: TypePing}), ErrNotReading, "the first error stays")

		closed := make(chan error, 1)
		go func() { closed <- c.Close() }()
		synctest.Wait()
		require.Empty(t, closed, "Close waits for the writer")
		require.NoError(t, pr.Close()) // giving up: the stream is closed
		require.Error(t, <-closed)
	})
}

func TestSendRefuses(t *testing.T) {
	c := NewConn(nil, io.Discard)
	var broken *ProtocolError
	require.ErrorAs(t, c.Send(Frame{Type: TypeData, Payload: make([]byte, MaxData+1)}), &broken)
	require.ErrorAs(t, c.Send(Frame{Type: TypeFile, Payload: make([]byte, MaxControl+1)}), &broken)
	require.NoError(t, c.Send(Frame{Type: TypeData, Payload: make([]byte, MaxData)}), "a refused frame breaks nothing")
	require.NoError(t, c.Close())
	require.Equal(t, io.ErrClosedPipe, c.Send(Frame{Type: TypePing}))
	require.NoError(t, c.Close(), "twice is fine")
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestWriteErrorStays(t *testing.T) {
	want := errors.New("broken pipe")
	c := NewConn(nil, failing{want})
	_ = c.Send(Frame{Type: TypePing})
	<-c.done
	require.Equal(t, want, c.Send(Frame{Type: TypePing}))
	require.Equal(t, want, c.Close())
}

func TestErrorFrameIsBounded(t *testing.T) {
	var b bytes.Buffer
	c := NewConn(nil, &b)
	require.NoError(t, c.SendError("protocol", strings.Repeat("x", 3*MaxErrorText)))
	require.NoError(t, c.Close())
	f, err := NewReader(&b).Next()
	require.NoError(t, err)
	require.LessOrEqual(t, len(f.Payload), MaxErrorText)
	var e Error
	require.NoError(t, Unmarshal(f, &e))
	require.Equal(t, "protocol", e.Code)
}

// A payload may be used again as soon as Send returned.
func TestSendCopies(t *testing.T) {
	g := newGate()
	c := NewConn(nil, g)
	p := []byte("before")
	require.NoError(t, c.Send(Frame{Type: TypeData, Stream: 1, Payload: p}))
	copy(p, "after!")
	close(g.open)
	require.NoError(t, c.Close())
	f, err := NewReader(&g.Buffer).Next()
	require.NoError(t, err)
	require.Equal(t, "before", string(f.Payload))
}
