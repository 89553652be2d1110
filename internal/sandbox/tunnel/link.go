package tunnel

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"mcpagents/internal/sandbox/wire"
)

// maxReason bounds the text of a close frame, in bytes.
const maxReason = 256

// link is one connection. It ends when both directions have, or when it is cut
// off; each end then sends its close frame, and the stream is free.
type link struct {
	tunnel *Tunnel
	stream uint8
	ours   bool // opened by this end
	in     *wire.Inbox
	out    *wire.Outbox
	ctx    context.Context // ends when the link is cut off
	cancel context.CancelFunc

	mu      sync.Mutex
	sock    net.Conn
	broken  error // why it was cut off
	sentEOF bool  // by us
	closed  bool  // our close frame was sent
	theirs  bool  // the other end's has come
}

// handle takes a frame of the link.
func (l *link) handle(f wire.Frame) error {
	if f.Type == wire.TypeCredit {
		n, err := wire.Uint32(f)
		if err != nil {
			return err
		}
		return l.out.Grant(n)
	}
	l.mu.Lock()
	theirs := l.theirs
	l.mu.Unlock()
	if theirs {
		return wire.Errorf("%s frame for stream %d after its close", f.Type, l.stream)
	}
	switch f.Type {
	case wire.TypeData:
		return l.in.Put(f.Payload)
	case wire.TypeEOF:
		l.in.Close(io.EOF)
		return nil
	default:
		return l.handleClose(f)
	}
}

// handleClose takes the other end's close frame. A regular one comes after both
// ends of input; what is still on its way to the socket is then delivered.
func (l *link) handleClose(f wire.Frame) error {
	var c wire.Close
	if err := wire.Unmarshal(f, &c); err != nil {
		return err
	}
	l.mu.Lock()
	l.theirs = true
	early, over := !l.sentEOF, l.closed
	l.mu.Unlock()
	if c.Error != "" || early {
		l.cut(errors.New(cutText(c.Error)))
	}
	l.in.Close(io.EOF) // where none came before
	if over {
		l.tunnel.remove(l)
	}
	return nil
}

// use gives the link its socket.
func (l *link) use(sock net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sock = sock
	if l.broken != nil {
		reset(sock)
	}
}

// cut ends both directions at once. The first reason stays.
func (l *link) cut(why error) {
	l.mu.Lock()
	first := l.broken == nil && !l.closed
	if first {
		l.broken = why
		if l.sock != nil {
			reset(l.sock)
		}
	}
	l.mu.Unlock()
	if !first {
		return
	}
	l.cancel()
	l.out.Fail(why)
	l.in.Close(why)
}

// run carries both directions to their end and then closes the link.
func (l *link) run() {
	defer l.cancel()
	l.mu.Lock()
	sock := l.sock
	l.mu.Unlock()
	if sock != nil {
		var outward sync.WaitGroup
		outward.Go(func() { l.send(sock) })
		l.receive(sock)
		outward.Wait()
		_ = sock.Close()
	}
	l.in.Discard() // what comes until the other end's close; no credit goes back for it
	l.in.Ended()
	l.mu.Lock()
	l.closed = true
	var c wire.Close
	if l.broken != nil {
		c.Error = cutText(l.broken.Error())
	}
	_ = l.tunnel.conn.Send(wire.Frame{Type: wire.TypeClose, Stream: l.stream, Payload: wire.Marshal(c)})
	over := l.theirs
	l.mu.Unlock()
	if over {
		l.tunnel.remove(l)
	}
}

// send carries what the socket says to the other end.
func (l *link) send(sock net.Conn) {
	if _, err := io.CopyBuffer(onlyWriter{l.out}, onlyReader{sock}, make([]byte, wire.MaxData)); err != nil {
		l.cut(err)
		return
	}
	l.mu.Lock()
	l.sentEOF = true
	l.mu.Unlock()
	_ = l.out.Close()
}

// receive carries what the other end says to the socket.
func (l *link) receive(sock net.Conn) {
	_, err := io.Copy(onlyWriter{sock}, onlyReader{l.in})
	if err == nil {
		err = closeWrite(sock)
	}
	if err != nil {
		l.cut(err)
	}
}

// closeWrite ends one direction, where the socket can.
func closeWrite(sock net.Conn) error {
	half, ok := sock.(interface{ CloseWrite() error })
	if !ok {
		return sock.Close()
	}
	if err := half.CloseWrite(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// reset closes a socket so that its peer sees a failure and not an end.
func reset(sock net.Conn) {
	if tcp, ok := sock.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = sock.Close()
}

func cutText(text string) string {
	if text == "" {
		return "the other end gave the connection up"
	}
	return text[:min(len(text), maxReason)]
}

type onlyWriter struct{ io.Writer }

type onlyReader struct{ io.Reader }
