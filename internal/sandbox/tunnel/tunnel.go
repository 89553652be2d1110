package tunnel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"mcpagents/internal/sandbox/wire"
)

// ErrFull says that as many connections are open as one end may open.
var ErrFull = fmt.Errorf("%d connections are open already", wire.MaxConns)

// errClosed ends what is under way when the tunnel is closed.
var errClosed = errors.New("the sandbox has ended")

// Dial connects to a port of 127.0.0.1 for a connection that the other end
// opened, or refuses it. The context ends with the connection.
type Dial func(ctx context.Context, port int) (net.Conn, error)

// Tunnel is one end. Handle never waits; goroutines of the tunnel do the
// reading, writing and dialling, and Close waits for them.
type Tunnel struct {
	conn  *wire.Conn
	first uint8 // of the streams that this end opens: they are first, first+2, …
	dial  Dial

	mu     sync.Mutex
	links  map[uint8]*link
	closed bool
	work   sync.WaitGroup
	free   chan struct{} // one token for each connection that this end may still open
}

// New returns an end that sends on conn and opens the streams first, first+2 …
func New(conn *wire.Conn, first uint8, dial Dial) *Tunnel {
	t := &Tunnel{conn: conn, first: first, dial: dial, links: map[uint8]*link{}, free: make(chan struct{}, wire.MaxConns)}
	for range wire.MaxConns {
		t.free <- struct{}{}
	}
	return t
}

// Carries reports whether f is a frame of a connection.
func Carries(f wire.Frame) bool {
	switch f.Type {
	case wire.TypeOpen, wire.TypeClose:
		return true
	case wire.TypeData, wire.TypeEOF, wire.TypeCredit:
		return f.Stream >= wire.FirstFront
	}
	return false
}

// Handle takes a frame of a connection. The error is a *wire.ProtocolError.
func (t *Tunnel) Handle(f wire.Frame) error {
	if f.Type == wire.TypeOpen {
		return t.accept(f)
	}
	t.mu.Lock()
	l := t.links[f.Stream]
	t.mu.Unlock()
	if l == nil {
		return wire.Errorf("%s frame for stream %d, which is no connection", f.Type, f.Stream)
	}
	return l.handle(f)
}

// accept begins a connection of the other end.
func (t *Tunnel) accept(f wire.Frame) error {
	var open wire.Open
	if err := wire.Unmarshal(f, &open); err != nil {
		return err
	}
	switch {
	case f.Stream < wire.FirstFront || (f.Stream-t.first)%2 == 0:
		return wire.Errorf("open frame with stream %d, which is not the sender's", f.Stream)
	case open.Port < 1 || open.Port > 65535:
		return wire.Errorf("open frame with port %d", open.Port)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.links[f.Stream] != nil {
		return wire.Errorf("open frame with stream %d, which is in use", f.Stream)
	}
	if t.closed {
		return nil // everything is being ended
	}
	l := t.add(f.Stream, false)
	t.work.Go(func() {
		sock, err := t.dial(l.ctx, open.Port)
		if err != nil {
			l.cut(err)
		} else {
			l.use(sock)
		}
		l.run()
	})
	return nil
}

// Carry opens a connection to a port at the other end and carries sock over it.
// It takes sock over in any case, and returns at once. ErrFull says that there
// are too many.
func (t *Tunnel) Carry(sock net.Conn, port int) error {
	select {
	case <-t.free:
		return t.open(sock, port)
	default:
		_ = sock.Close()
		return ErrFull
	}
}

// Serve carries what a listener takes to a port at the other end, until the
// listener is closed. While as many connections are open as may be, the next
// ones wait in the listener's queue.
func (t *Tunnel) Serve(ctx context.Context, l net.Listener, port int) error {
	for {
		select {
		case <-t.free:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		sock, err := l.Accept()
		if err != nil {
			t.free <- struct{}{}
			return err
		}
		if err := t.open(sock, port); err != nil {
			return err
		}
	}
}

// open begins a connection of our own; the caller has taken a token.
func (t *Tunnel) open(sock net.Conn, port int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	stream := t.first
	for t.links[stream] != nil {
		stream += 2
	}
	err := t.conn.Send(wire.Frame{Type: wire.TypeOpen, Stream: stream, Payload: wire.Marshal(wire.Open{Port: port})})
	if t.closed && err == nil {
		err = errClosed
	}
	if err != nil {
		_ = sock.Close()
		t.free <- struct{}{}
		return err
	}
	l := t.add(stream, true)
	l.use(sock)
	t.work.Go(l.run)
	return nil
}

// add makes a link; the caller holds the lock.
func (t *Tunnel) add(stream uint8, ours bool) *link {
	l := &link{tunnel: t, stream: stream, ours: ours, in: wire.NewInbox(t.conn, stream), out: wire.NewOutbox(t.conn, stream)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	t.links[stream] = l
	return l
}

// remove forgets a link that both ends have closed.
func (t *Tunnel) remove(l *link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.links[l.stream] != l {
		return
	}
	delete(t.links, l.stream)
	if l.ours {
		t.free <- struct{}{}
	}
}

// Close cuts every connection off and waits until nothing of the tunnel runs.
// Listeners are closed by whoever made them.
func (t *Tunnel) Close() {
	t.mu.Lock()
	t.closed = true
	links := make([]*link, 0, len(t.links))
	for _, l := range t.links {
		links = append(links, l)
	}
	t.mu.Unlock()
	for _, l := range links {
		l.cut(errClosed)
	}
	t.work.Wait()
}

// Open is how many connections there are.
func (t *Tunnel) Open() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.links)
}
