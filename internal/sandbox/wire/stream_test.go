package wire

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// link is one stream between two connections: an Outbox on one side, an Inbox
// on the other, with the readers that both ends have. It checks on every frame
// that no more is under way than the window.
type link struct {
	a, b    net.Conn
	ca, cb  *Conn
	out     *Outbox
	in      *Inbox
	readers sync.WaitGroup

	mu       sync.Mutex
	err      error // of a reader
	underway int   // received and not granted again
	most     int
}

func newLink() *link {
	l := &link{}
	l.a, l.b = net.Pipe()
	l.ca, l.cb = NewConn(l.a, l.a), NewConn(l.b, l.b)
	l.out, l.in = NewOutbox(l.ca, Stdout), NewInbox(l.cb, Stdout)
	l.readers.Go(func() {
		l.loop(l.cb, func(f Frame) error {
			l.track(len(f.Payload))
			if f.Type == TypeEOF {
				l.in.Close(io.EOF)
				return nil
			}
			return l.in.Put(f.Payload)
		})
	})
	l.readers.Go(func() {
		l.loop(l.ca, func(f Frame) error {
			n, err := Uint32(f)
			l.track(-int(n))
			return errors.Join(err, l.out.Grant(n))
		})
	})
	return l
}

func (l *link) loop(c *Conn, handle func(Frame) error) {
	for {
		f, err := c.Next()
		if err == nil {
			err = handle(f)
		}
		if err != nil {
			l.mu.Lock()
			if l.err == nil && err != io.EOF && !errors.Is(err, io.ErrClosedPipe) {
				l.err = err
			}
			l.mu.Unlock()
			return
		}
	}
}

func (l *link) track(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.underway += n
	l.most = max(l.most, l.underway)
}

func (l *link) close() error {
	_, _ = l.a.Close(), l.b.Close()
	_, _ = l.ca.Close(), l.cb.Close()
	l.readers.Wait()
	return l.err
}

// Whatever the speeds of producer and consumer, everything arrives in order
// and never more than the window is under way. A deadlock fails the bubble.
func TestStreamOfRandomSpeeds(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			total := rnd.IntN(3 * Window)
			slowOut, slowIn := time.Duration(rnd.IntN(3))*time.Millisecond, time.Duration(rnd.IntN(3))*time.Millisecond
			chunkOut, chunkIn := 1+rnd.IntN(200_000), 1+rnd.IntN(200_000)
			l := newLink()
			var producer sync.WaitGroup
			producer.Go(func() {
				for sent := 0; sent < total; {
					n := min(chunkOut, total-sent)
					_, err := l.out.Write(pattern(sent, n))
					assert.NoError(t, err)
					sent += n
					time.Sleep(slowOut) // of the bubble's clock
				}
				assert.NoError(t, l.out.Close())
			})
			buf, got := make([]byte, chunkIn), 0
			for {
				n, err := l.in.Read(buf)
				if n > 0 && string(buf[:n]) != string(pattern(got, n)) {
					t.Errorf("seed %d: bytes at %d differ", seed, got)
				}
				got += n
				if err != nil {
					assert.Equal(t, io.EOF, err)
					break
				}
				time.Sleep(slowIn)
			}
			producer.Wait()
			require.Equal(t, total, got, "seed %d", seed)
			require.EqualValues(t, total, l.in.Total())
			require.EqualValues(t, total, l.out.Total())
			require.NoError(t, l.close())
			require.LessOrEqual(t, l.most, Window)
		})
	}
}

func pattern(from, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte((from + i) * 7 / 3)
	}
	return b
}

// Without a consumer the producer stops at the window, and Discard lets it go.
func TestDiscardReleasesTheProducer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink()
		done := make(chan error, 1)
		go func() {
			_, err := l.out.Write(make([]byte, 5*Window))
			done <- err
		}()
		synctest.Wait()
		require.EqualValues(t, Window, l.in.Total(), "held at the window")
		require.Empty(t, done)
		l.in.Discard()
		require.NoError(t, <-done)
		synctest.Wait()
		require.EqualValues(t, 5*Window, l.in.Total())
		require.Empty(t, l.in.buf, "nothing is kept")
		require.NoError(t, l.close())
	})
}

// After Ended no credit goes out, whoever reads or discards.
func TestEndedReturnsNoCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink()
		go func() { _, _ = l.out.Write(make([]byte, Window)) }()
		synctest.Wait()
		l.in.Ended()
		l.in.Discard()
		synctest.Wait()
		require.Zero(t, l.out.credit)
		l.out.Fail(io.ErrClosedPipe)
		require.NoError(t, l.close())
	})
}

func TestInboxRefuses(t *testing.T) {
	conn := NewConn(nil, io.Discard)
	defer conn.Close()
	in := NewInbox(conn, Stdout)
	require.NoError(t, in.Put(make([]byte, Window)))
	var broken *ProtocolError
	require.ErrorAs(t, in.Put([]byte{1}), &broken, "one byte beyond the credit")
	in = NewInbox(conn, Stdout)
	in.Close(io.EOF)
	require.ErrorAs(t, in.Put([]byte{1}), &broken, "after the end")
	in = NewInbox(conn, Stdout)
	in.Close(io.ErrClosedPipe)
	require.NoError(t, in.Put(make([]byte, Window)), "what was under way when we closed is nobody's fault")
	require.ErrorAs(t, in.Put([]byte{1}), &broken, "but no more than that")
	_, err := in.Read(make([]byte, 1))
	require.Equal(t, io.ErrClosedPipe, err)
	in.Close(io.EOF)
	_, err = in.Read(make([]byte, 1))
	require.Equal(t, io.ErrClosedPipe, err, "the first end stays")
}

func TestInboxGivesWhatArrivedBeforeItsEnd(t *testing.T) {
	conn := NewConn(nil, io.Discard)
	defer conn.Close()
	in := NewInbox(conn, Stdout)
	require.NoError(t, in.Put([]byte("abc")))
	in.Close(errors.New("lost"))
	got, err := io.ReadAll(in)
	require.Equal(t, "abc", string(got))
	require.EqualError(t, err, "lost")
}

func TestOutboxRefuses(t *testing.T) {
	conn := NewConn(nil, io.Discard)
	defer conn.Close()
	out := NewOutbox(conn, Stdin)
	var broken *ProtocolError
	require.ErrorAs(t, out.Grant(1), &broken, "more than was ever sent")
	_, err := out.Write(make([]byte, 10))
	require.NoError(t, err)
	require.ErrorAs(t, out.Grant(11), &broken)
	require.ErrorAs(t, out.Grant(1<<32-1), &broken)
	require.NoError(t, out.Grant(10))
	require.NoError(t, out.Close())
	require.NoError(t, out.Close(), "once is enough")
	_, err = out.Write([]byte{1})
	require.Equal(t, io.ErrClosedPipe, err)
}

// A writer that waits for credit is let go by the end, and told how much left.
func TestFailReleasesTheWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := NewConn(nil, io.Discard)
		out := NewOutbox(conn, Stdin)
		done := make(chan string, 1)
		go func() {
			n, err := out.Write(make([]byte, Window+1))
			done <- fmt.Sprint(n, " ", err)
		}()
		synctest.Wait()
		out.Fail(errors.New("lost"))
		require.Equal(t, fmt.Sprint(Window, " lost"), <-done)
		require.NoError(t, conn.Close())
	})
}

// The credit of a frame is taken and the frame is queued in one step. In two, a
// Close beside the Write could put the end before the data, and the other end
// would have to call that a broken protocol.
func TestCreditAndFrameAreOneStep(t *testing.T) {
	conn := NewConn(nil, io.Discard)
	out := NewOutbox(conn, Stdin)
	conn.mu.Lock() // holds the writer where it queues its frame
	done := make(chan error, 2)
	go func() {
		_, err := out.Write([]byte("data"))
		done <- err
	}()
	for seen := 0; seen < 1000; runtime.Gosched() {
		if !out.mu.TryLock() {
			seen++
			continue
		}
		taken := out.credit < Window
		out.mu.Unlock()
		require.False(t, taken, "credit was taken and a Close can come before the frame")
	}
	go func() { done <- out.Close() }()
	conn.mu.Unlock()
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	require.NoError(t, conn.Close())
}
