package wire

import (
	"encoding/binary"
	"errors"
	"io"
	"sync"
)

// maxQueued bounds what waits to be written: the windows of all streams and
// the largest control frames that are legally under way. A peer that lets more
// pile up has stopped reading.
const maxQueued = (3+2*MaxConns)*Window + 8*MaxControl

// ErrNotReading says that the peer let more pile up than the protocol allows.
var ErrNotReading = errors.New("sandbox protocol: the other end has stopped reading")

// Conn writes frames to one end of the stream without ever making the caller
// wait: callers are the readers of the two ends, and a reader that waits for a
// writer can deadlock. What may be queued is bounded by credit. Control frames
// overtake data, so that a cancel or a ping never waits behind it; data, end of
// stream, exit and spawn keep their order.
type Conn struct {
	*Reader
	w io.Writer

	mu      sync.Mutex
	wake    sync.Cond
	control []byte // encoded frames
	ordered []byte
	spare   []byte // the writer's last buffer, used again
	closed  bool
	err     error
	done    chan struct{}
}

// NewConn returns a Conn over rw and starts its writing goroutine, which ends
// with Close or the first write error.
func NewConn(r io.Reader, w io.Writer) *Conn {
	c := &Conn{Reader: NewReader(r), w: w, done: make(chan struct{})}
	c.wake.L = &c.mu
	go c.write()
	return c
}

// Send queues a frame. The payload is copied. It returns the error that ended
// the writing, if any.
func (c *Conn) Send(f Frame) error {
	if len(f.Payload) > f.Type.max() {
		return Errorf("%s frame of %d bytes, at most %d", f.Type, len(f.Payload), f.Type.max())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil:
		return c.err
	case c.closed:
		return io.ErrClosedPipe
	case len(c.control)+len(c.ordered)+len(f.Payload) > maxQueued:
		c.err = ErrNotReading
		return c.err
	}
	if f.Type.ordered() {
		c.ordered = appendFrame(c.ordered, f)
	} else {
		c.control = appendFrame(c.control, f)
	}
	c.wake.Signal()
	return nil
}

// SendJSON queues a control frame with a JSON payload.
func (c *Conn) SendJSON(t Type, v any) error { return c.Send(Frame{Type: t, Payload: Marshal(v)}) }

// SendError queues an error frame, its text cut to the bound.
func (c *Conn) SendError(code, text string) error {
	if len(text) > MaxErrorText-256 {
		text = text[:MaxErrorText-256]
	}
	return c.SendJSON(TypeError, Error{Code: code, Text: text})
}

// Close lets the writer finish what is queued and waits for it. To give up on
// a peer that does not read, close the stream first.
func (c *Conn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.wake.Signal()
	c.mu.Unlock()
	<-c.done
	return c.err
}

func (c *Conn) write() {
	defer close(c.done)
	for {
		b, ok := c.take()
		if !ok {
			return
		}
		if _, err := c.w.Write(b); err != nil {
			c.mu.Lock()
			c.err = err
			c.control, c.ordered = nil, nil
			c.mu.Unlock()
			return
		}
		c.mu.Lock()
		if cap(b) <= 2*Window {
			c.spare = b[:0]
		}
		c.mu.Unlock()
	}
}

// take waits for something to write and takes all control frames, or else all
// ordered ones.
func (c *Conn) take() ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.control) == 0 && len(c.ordered) == 0 {
		if c.closed || c.err != nil {
			return nil, false
		}
		c.wake.Wait()
	}
	q := &c.control
	if len(*q) == 0 {
		q = &c.ordered
	}
	b := *q
	*q, c.spare = c.spare, nil
	return b, true
}

// ordered reports whether frames of type t keep their place behind data. A
// spawn does, so that input left over from one command is not taken for the
// next one's.
func (t Type) ordered() bool {
	return t == TypeData || t == TypeEOF || t == TypeExit || t == TypeSpawn || t == TypeOpen || t == TypeClose
}

func appendFrame(b []byte, f Frame) []byte {
	b = append(b, byte(f.Type), f.Stream, 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.Payload)))
	return append(b, f.Payload...)
}
