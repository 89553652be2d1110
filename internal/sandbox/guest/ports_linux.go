package guest

import (
	"context"
	"net"
	"strconv"
	"sync"
	"time"

	"mcpagents/internal/sandbox/tunnel"
	"mcpagents/internal/sandbox/wire"
)

// connectWithin bounds a connection to a port of the sandbox itself.
const connectWithin = 5 * time.Second

// ports are the connections between the sandbox's loopback and the front end:
// those that programs inside make to the one port that init listens on, and
// those that the front end makes to programs inside. They outlive commands.
type ports struct {
	conn   *wire.Conn
	tunnel *tunnel.Tunnel
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	listener net.Listener // used by the session's reader until close
}

func newPorts(conn *wire.Conn) *ports {
	p := &ports{conn: conn, tunnel: tunnel.New(conn, wire.FirstInit, connect)}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// loopback is a port of 127.0.0.1.
func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func connect(ctx context.Context, port int) (net.Conn, error) {
	d := net.Dialer{Timeout: connectWithin}
	return d.DialContext(ctx, "tcp4", loopback(port))
}

// listen takes a listen frame. A port that cannot be had is answered, and may be
// asked for again.
func (p *ports) listen(f wire.Frame) error {
	var ask wire.Listen
	if err := wire.Unmarshal(f, &ask); err != nil {
		return err
	}
	switch {
	case ask.Port < 1 || ask.Port > 65535:
		return wire.Errorf("listen frame with port %d", ask.Port)
	case p.listener != nil:
		return wire.Errorf("a second listen frame")
	case p.ctx.Err() != nil:
		return nil // everything is being ended
	}
	l, err := net.Listen("tcp4", loopback(ask.Port))
	if err != nil {
		return p.conn.SendJSON(wire.TypeListening, wire.Listening{Port: ask.Port, Error: err.Error()})
	}
	p.listener = l
	p.work.Go(func() {
		defer context.AfterFunc(p.ctx, func() { _ = l.Close() })()
		_ = p.tunnel.Serve(p.ctx, l, ask.Port)
		_ = l.Close()
	})
	return p.conn.SendJSON(wire.TypeListening, wire.Listening{Port: ask.Port})
}

// close cuts every connection off.
func (p *ports) close() {
	p.cancel()
	p.tunnel.Close()
	p.work.Wait()
}
