package tunnel

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox/wire"
)

const patience = time.Minute

// end is one end of a pair, read as a front end or init reads.
type end struct {
	*Tunnel
	conn   *wire.Conn
	broken chan error // what Handle returned
}

// pair joins two ends by pipes. Both refuse to connect until dials says how.
func pair(t *testing.T, front, inside Dial) (a, b *end) {
	t.Helper()
	fromA, toB := io.Pipe()
	fromB, toA := io.Pipe()
	a, b = newEnd(fromB, toB, wire.FirstFront, front), newEnd(fromA, toA, wire.FirstInit, inside)
	var reading sync.WaitGroup
	reading.Go(a.read)
	reading.Go(b.read)
	t.Cleanup(func() {
		a.Close()
		b.Close()
		for _, c := range []io.Closer{fromA, toB, fromB, toA, a.conn, b.conn} {
			_ = c.Close()
		}
		reading.Wait()
		for _, e := range []*end{a, b} {
			assert.NoError(t, <-e.broken)
		}
	})
	return a, b
}

func newEnd(r io.Reader, w io.Writer, first uint8, dial Dial) *end {
	conn := wire.NewConn(r, w)
	return &end{Tunnel: New(conn, first, dial), conn: conn, broken: make(chan error, 1)}
}

func (e *end) read() {
	defer close(e.broken)
	for {
		f, err := e.conn.Next()
		if err != nil {
			return
		}
		if err := e.Handle(f); err != nil {
			e.broken <- err
			return
		}
	}
}

func refuse(context.Context, int) (net.Conn, error) { return nil, errors.New("refused") }

// serve listens on loopback and hands each connection to do.
func serve(t *testing.T, do func(*net.TCPConn)) Dial {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	var work sync.WaitGroup
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer c.Close()
				do(c.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(work.Wait)
	t.Cleanup(func() { _ = l.Close() })
	return func(ctx context.Context, _ int) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp4", l.Addr().String())
	}
}

func echo(c *net.TCPConn) { _, _ = io.Copy(c, c) }

// connect is a TCP connection whose other side end carries.
func connect(t *testing.T, e *end, port int) *net.TCPConn {
	t.Helper()
	dialled, accepted := tcpPair(t)
	require.NoError(t, e.Carry(accepted, port))
	return dialled
}

func tcpPair(t *testing.T) (a *net.TCPConn, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	c, err := net.Dial("tcp4", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	b, err = l.Accept()
	require.NoError(t, err)
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	return c.(*net.TCPConn), b
}

func eventuallyEmpty(t *testing.T, ends ...*end) {
	t.Helper()
	for _, e := range ends {
		require.Eventually(t, func() bool { return e.Open() == 0 }, patience, time.Millisecond, "connections are left")
	}
}

// A request whose end is the end of input is answered after that end.
func TestHalfClose(t *testing.T) {
	a, b := pair(t, refuse, serve(t, func(c *net.TCPConn) {
		all, err := io.ReadAll(c)
		if err == nil {
			_, _ = c.Write(append([]byte("got "), all...))
		}
	}))
	for range 100 { // more than there are streams: their numbers are used again
		c := connect(t, a, 80)
		_, err := c.Write([]byte("all of it"))
		require.NoError(t, err)
		require.NoError(t, c.CloseWrite())
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Equal(t, "got all of it", string(got))
	}
	eventuallyEmpty(t, a, b)
}

// Both ends open connections, many at once and larger than the window.
func TestBothWaysAtOnce(t *testing.T) {
	dial := serve(t, echo)
	a, b := pair(t, dial, dial)
	var all sync.WaitGroup
	for i := range 12 {
		c := connect(t, []*end{a, b}[i%2], 80)
		all.Go(func() {
			want := make([]byte, wire.Window*3+rand.IntN(9999))
			for i := range want {
				want[i] = byte(i>>8 + i)
			}
			go func() { _, _ = c.Write(want); _ = c.CloseWrite() }()
			got, err := io.ReadAll(c)
			assert.NoError(t, err)
			assert.True(t, bytes.Equal(want, got), "%d bytes of %d", len(got), len(want))
		})
	}
	all.Wait()
	eventuallyEmpty(t, a, b)
}

// Nothing listens, or the port is refused: the connection is reset, not ended,
// so that a browser does not take it for an empty answer.
func TestRefused(t *testing.T) {
	a, b := pair(t, refuse, refuse)
	for _, e := range []*end{a, b} {
		c := connect(t, e, 80)
		_, err := c.Read(make([]byte, 1))
		require.Error(t, err)
		require.NotErrorIs(t, err, io.EOF)
	}
	eventuallyEmpty(t, a, b)
}

// A reader that has stopped holds its own connection only.
func TestStoppedReaderHoldsNothingElse(t *testing.T) {
	dial := serve(t, echo)
	a, _ := pair(t, refuse, dial)
	stuck := connect(t, a, 80)
	go func() { // ends with the socket
		buf := make([]byte, wire.MaxData)
		for {
			if _, err := stuck.Write(buf); err != nil {
				return
			}
		}
	}()
	for range 20 {
		c := connect(t, a, 80)
		_, err := c.Write([]byte("hello"))
		require.NoError(t, err)
		_, err = io.ReadFull(c, make([]byte, 5))
		require.NoError(t, err)
		require.NoError(t, c.Close())
	}
	require.NoError(t, stuck.Close())
}

// What is too much waits when it is served, and is an error when it is carried.
func TestBound(t *testing.T) {
	a, b := pair(t, serve(t, echo), refuse)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { _ = b.Serve(ctx, l, 80) })
	defer serving.Wait()
	defer l.Close()
	defer cancel()
	var open []net.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	for range wire.MaxConns {
		c, err := net.Dial("tcp4", l.Addr().String())
		require.NoError(t, err)
		require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
		_, err = c.Write([]byte("x"))
		require.NoError(t, err)
		_, err = c.Read(make([]byte, 1))
		require.NoError(t, err)
		open = append(open, c)
	}
	require.Equal(t, wire.MaxConns, a.Open())
	_, sock := tcpPair(t)
	require.ErrorIs(t, b.Carry(sock, 80), ErrFull)
	waiting, err := net.Dial("tcp4", l.Addr().String())
	require.NoError(t, err)
	defer waiting.Close()
	_, err = waiting.Write([]byte("y"))
	require.NoError(t, err)
	require.NoError(t, waiting.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	_, err = waiting.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "it waits")
	require.NoError(t, open[0].Close())
	require.NoError(t, waiting.SetReadDeadline(time.Now().Add(patience)))
	_, err = waiting.Read(make([]byte, 1))
	require.NoError(t, err, "its turn came")
}

// The end of a tunnel ends what is under way, a connection being made included.
func TestCloseEndsEverything(t *testing.T) {
	dialling := make(chan struct{}, 1)
	a, b := pair(t, func(ctx context.Context, _ int) (net.Conn, error) {
		dialling <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}, serve(t, echo))
	open, hanging := connect(t, a, 80), connect(t, b, 80)
	<-dialling
	a.Close()
	for _, c := range []net.Conn{open, hanging} {
		_, err := c.Read(make([]byte, 1))
		require.Error(t, err)
	}
	_, sock := tcpPair(t)
	require.Error(t, a.Carry(sock, 80))
}
