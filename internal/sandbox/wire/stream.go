package wire

import (
	"io"
	"sync"
)

// returnAfter is how much a consumer takes before its credit is returned. With
// it small messages cost no credit frame each, and the sender still has three
// quarters of the window.
const returnAfter = Window / 4

// Inbox is the receiving end of one stream. Put never waits; Read does.
type Inbox struct {
	stream uint8
	conn   *Conn

	mu      sync.Mutex
	wake    sync.Cond
	buf     []byte
	off     int
	granted int // what the sender may still send
	taken   int // consumed, its credit not returned yet
	total   int64
	end     error // what Read returns once the buffer is empty
	discard bool
	ended   bool // the command is over: no credit is returned any more
}

// NewInbox returns the receiving end of stream on conn.
func NewInbox(conn *Conn, stream uint8) *Inbox {
	b := &Inbox{stream: stream, conn: conn, granted: Window}
	b.wake.L = &b.mu
	return b
}

// Put adds what arrived. More than was granted is a *ProtocolError.
func (b *Inbox) Put(p []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(p) > b.granted {
		return Errorf("%d bytes on stream %d beyond its credit of %d", len(p), b.stream, b.granted)
	}
	if b.end == io.EOF {
		return Errorf("data on stream %d after its end", b.stream)
	}
	b.granted -= len(p)
	b.total += int64(len(p))
	if b.discard || b.end != nil {
		b.took(len(p))
		return nil
	}
	if b.off == len(b.buf) {
		b.buf, b.off = b.buf[:0], 0
	} else if b.off > Window {
		b.buf = append(b.buf[:0], b.buf[b.off:]...)
		b.off = 0
	}
	b.buf = append(b.buf, p...)
	b.wake.Signal()
	return nil
}

// Read takes what has arrived, waiting for at least one byte.
func (b *Inbox) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.off == len(b.buf) {
		if b.end != nil {
			return 0, b.end
		}
		b.wake.Wait()
	}
	n := copy(p, b.buf[b.off:])
	b.off += n
	b.took(n)
	return n, nil
}

// took returns credit for n consumed bytes, in lots.
func (b *Inbox) took(n int) {
	b.taken += n
	if b.taken < returnAfter || b.ended || b.end != nil {
		return
	}
	if b.conn.Send(Frame{Type: TypeCredit, Stream: b.stream, Payload: AppendUint32(uint32(b.taken))}) == nil {
		b.granted += b.taken
	}
	b.taken = 0
}

// Close ends the stream with err (io.EOF for its regular end) once what has
// arrived was read. The first end stays.
func (b *Inbox) Close(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.end == nil {
		b.end = err
	}
	b.wake.Broadcast()
}

// Discard throws away what has arrived and what still comes: its credit is
// returned at once, so that the sender is never held by a consumer that left.
func (b *Inbox) Discard() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.discard = true
	n := len(b.buf) - b.off
	b.buf, b.off = nil, 0
	b.took(n)
}

// Ended stops the return of credit: the command is over, and a late credit
// would be taken for the next command's.
func (b *Inbox) Ended() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}

// Total is how many bytes arrived.
func (b *Inbox) Total() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total
}

// Outbox is the sending end of one stream. Write waits for credit.
type Outbox struct {
	stream uint8
	conn   *Conn

	mu     sync.Mutex
	wake   sync.Cond
	credit int
	total  int64
	end    error
}

// NewOutbox returns the sending end of stream on conn.
func NewOutbox(conn *Conn, stream uint8) *Outbox {
	o := &Outbox{stream: stream, conn: conn, credit: Window}
	o.wake.L = &o.mu
	return o
}

// Write sends p, in pieces that fit a frame and the credit.
func (o *Outbox) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		n, err := o.send(p[written:])
		if err != nil {
			return written, err
		}
		written += n
	}
	return written, nil
}

// send waits for credit and sends the beginning of p. The lock is held until
// the frame is queued, so that a concurrent Close cannot put the end before it.
func (o *Outbox) send(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.credit == 0 && o.end == nil {
		o.wake.Wait()
	}
	if o.end != nil {
		return 0, o.end
	}
	n := min(len(p), o.credit, MaxData)
	if err := o.conn.Send(Frame{Type: TypeData, Stream: o.stream, Payload: p[:n]}); err != nil {
		return 0, err
	}
	o.credit -= n
	o.total += int64(n)
	return n, nil
}

// Grant adds returned credit. More than was ever sent is a *ProtocolError.
func (o *Outbox) Grant(n uint32) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if uint64(o.credit)+uint64(n) > Window {
		return Errorf("credit of %d on stream %d exceeds the window", n, o.stream)
	}
	o.credit += int(n)
	o.wake.Broadcast()
	return nil
}

// Close sends the end of the stream behind its data. Later writes fail with
// io.ErrClosedPipe.
func (o *Outbox) Close() error {
	if !o.fail(io.ErrClosedPipe) {
		return nil
	}
	return o.conn.Send(Frame{Type: TypeEOF, Stream: o.stream})
}

// Fail ends waiting and later writes with err, and sends nothing.
func (o *Outbox) Fail(err error) { o.fail(err) }

func (o *Outbox) fail(err error) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.end != nil {
		return false
	}
	o.end = err
	o.wake.Broadcast()
	return true
}

// Total is how many bytes were sent.
func (o *Outbox) Total() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total
}
