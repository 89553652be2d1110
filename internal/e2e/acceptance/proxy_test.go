package acceptance

import (
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// halfOpen is a link between a front end and an engine that can stop carrying
// anything without closing, as a network does that went away.
type halfOpen struct {
	listener net.Listener
	engine   string        // path of its socket
	frozen   chan struct{} // closed when the link stops
	freeze   sync.Once
	all      bool // later connections do not get through either

	mu    sync.Mutex
	conns []net.Conn
	tasks sync.WaitGroup
}

// newHalfOpen returns a link to the engine whose socket is at a path.
func newHalfOpen(t *testing.T, engine string, all bool) *halfOpen {
	t.Helper()
	return linkAt(t, filepath.Join(t.TempDir(), "s"), engine, all)
}

// linkAt is newHalfOpen with a path of its own.
func linkAt(t *testing.T, path, engine string, all bool) *halfOpen {
	t.Helper()
	listener, err := net.Listen("unix", path)
	require.NoError(t, err)
	h := &halfOpen{listener: listener, engine: engine, frozen: make(chan struct{}), all: all}
	h.tasks.Go(h.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		h.stop()
		h.mu.Lock()
		for _, c := range h.conns {
			_ = c.Close()
		}
		h.mu.Unlock()
		h.tasks.Wait()
	})
	return h
}

func (h *halfOpen) address() string { return "unix://" + h.listener.Addr().String() }

// stop makes the link carry nothing more.
func (h *halfOpen) stop() { h.freeze.Do(func() { close(h.frozen) }) }

func (h *halfOpen) accept() {
	for {
		near, err := h.listener.Accept()
		if err != nil {
			return
		}
		h.keep(near)
		select {
		case <-h.frozen:
			if h.all {
				continue
			}
		default:
		}
		far, err := net.Dial("unix", h.engine)
		if err != nil {
			_ = near.Close()
			continue
		}
		h.keep(far)
		h.tasks.Go(func() { h.carry(near, far) })
		h.tasks.Go(func() { h.carry(far, near) })
	}
}

func (h *halfOpen) keep(c net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns = append(h.conns, c)
}

// carry copies from one to the other until the link stops. A connection that
// was made after that, where such get through, is carried to its end.
func (h *halfOpen) carry(from, to net.Conn) {
	late := false
	select {
	case <-h.frozen:
		late = true
	default:
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		select {
		case <-h.frozen:
			if !late {
				return
			}
		default:
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err == io.EOF {
			_ = to.(*net.UnixConn).CloseWrite()
		}
		if err != nil {
			return
		}
	}
}
