package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"mcpagents/internal/sandbox/wire"
)

// connectWithin bounds a connection to this machine's loopback.
const connectWithin = 5 * time.Second

// forward is the port that Forward was asked for.
type forward struct {
	port int
	done chan struct{} // closed at init's answer
	err  error         // why it cannot be had, once done
}

// Forward makes 127.0.0.1:port inside the sandbox lead to 127.0.0.1:port here,
// until the sandbox ends. A connection that nothing takes here is reset inside.
// It can be asked for once; a port that is taken inside is an error, after which
// another try is possible.
func (s *Sandbox) Forward(ctx context.Context, port int) error {
	ask := &forward{port: port, done: make(chan struct{})}
	s.mu.Lock()
	if s.forward != nil {
		s.mu.Unlock()
		return errors.New("forward a port into the sandbox: one is forwarded already")
	}
	s.forward = ask
	s.mu.Unlock()
	if err := s.conn.SendJSON(wire.TypeListen, wire.Listen{Port: port}); err != nil {
		return fmt.Errorf("forward port %d into the sandbox: %w", port, err)
	}
	select {
	case <-ask.done:
	case <-s.ended:
		return fmt.Errorf("forward port %d into the sandbox: %w", port, s.Err())
	case <-ctx.Done():
		return fmt.Errorf("forward port %d into the sandbox: %w", port, context.Cause(ctx))
	}
	if ask.err != nil {
		return fmt.Errorf("forward port %d into the sandbox: %w", port, ask.err)
	}
	return nil
}

// handleListening takes init's answer to Forward.
func (s *Sandbox) handleListening(f wire.Frame) error {
	var l wire.Listening
	if err := wire.Unmarshal(f, &l); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forward == nil || s.forward.port != l.Port || isClosed(s.forward.done) {
		return wire.Errorf("a listening frame that nobody asked for")
	}
	if l.Error != "" {
		s.forward.err = errors.New(cut(l.Error))
	}
	close(s.forward.done)
	if l.Error != "" {
		s.forward = nil
	}
	return nil
}

// dialOut connects to this machine for a connection from inside. What runs there
// may be hostile: nothing but the forwarded port is connected to.
func (s *Sandbox) dialOut(ctx context.Context, port int) (net.Conn, error) {
	s.mu.Lock()
	allowed := s.forward != nil && s.forward.port == port
	s.mu.Unlock()
	if !allowed {
		return nil, fmt.Errorf("port %d is not forwarded", port)
	}
	d := net.Dialer{Timeout: connectWithin}
	return d.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// Carry connects sock, which it takes over, to 127.0.0.1:port inside. A port
// where nothing listens resets it.
func (s *Sandbox) Carry(sock net.Conn, port int) error {
	if err := s.tunnel.Carry(sock, port); err != nil {
		return fmt.Errorf("connect to port %d of the sandbox: %w", port, err)
	}
	return nil
}

// Serve carries what a listener here takes to 127.0.0.1:port inside, until the
// listener is closed or ctx ends. It does not close the listener.
func (s *Sandbox) Serve(ctx context.Context, l net.Listener, port int) error {
	if err := s.tunnel.Serve(ctx, l, port); err != nil {
		return fmt.Errorf("serve port %d of the sandbox: %w", port, err)
	}
	return nil
}

// Dial connects to 127.0.0.1:port inside. It returns before that is known to
// work: where nothing listens, the first read fails. The connection has no half
// close.
func (s *Sandbox) Dial(port int) (net.Conn, error) {
	near, far := net.Pipe()
	if err := s.Carry(far, port); err != nil {
		_ = near.Close()
		return nil, err
	}
	return near, nil
}
