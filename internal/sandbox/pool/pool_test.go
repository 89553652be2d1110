package pool

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/wire"
)

// engine is a runtime whose sandboxes only greet and say goodbye.
type engine struct {
	mu     sync.Mutex
	opened int
	live   map[string]*instance
	fail   error
	print  atomic.Value
}

type instance struct {
	net.Conn
	id  string
	eng *engine
}

func (i *instance) ID() string                    { return i.id }
func (i *instance) Diagnostics() string           { return "" }
func (i *instance) Destroy(context.Context) error { i.eng.remove(i.id); return i.Close() }

func (e *engine) remove(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.live, id)
}

func (e *engine) counts() (opened, live int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.opened, len(e.live)
}

func (e *engine) Name() string                                   { return "fake" }
func (e *engine) Environ(sandbox.Spec) []string                  { return nil }
func (e *engine) List(context.Context) ([]sandbox.Listed, error) { return nil, nil }
func (e *engine) Sweep(context.Context, bool) ([]string, error)  { return nil, nil }
func (e *engine) Fingerprint(context.Context, sandbox.Spec) (string, error) {
	return e.print.Load().(string), nil
}

func (e *engine) Start(_ context.Context, spec sandbox.Spec) (sandbox.Instance, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fail != nil {
		return nil, e.fail
	}
	ours, theirs := net.Pipe()
	i := &instance{Conn: ours, id: spec.ID, eng: e}
	e.opened++
	e.live[spec.ID] = i
	go func() {
		c := wire.NewConn(theirs, theirs)
		defer c.Close()
		defer theirs.Close()
		for {
			f, err := c.Next()
			switch {
			case err != nil || f.Type == wire.TypeBye:
				return
			case f.Type == wire.TypeHello:
				_ = c.SendJSON(wire.TypeHello, wire.Welcome{Version: wire.Version})
			case f.Type == wire.TypePing:
				_ = c.Send(wire.Frame{Type: wire.TypePong, Payload: f.Payload})
			}
		}
	}()
	return i, nil
}

// first is the id of the oldest spare.
func (p *Pool) first() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spares[0].box.ID()
}

func newEngine() *engine {
	e := &engine{live: map[string]*instance{}}
	e.print.Store("a")
	return e
}

func (e *engine) pool(size int) *Pool {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	return New(sandbox.Spec{Provider: "claude"}, size, func(ctx context.Context, s sandbox.Spec) (*sandbox.Sandbox, error) {
		return sandbox.Open(ctx, e, s, log)
	}, e.Fingerprint, log)
}

func (e *engine) requireCounts(t *testing.T, opened, live int) {
	t.Helper()
	synctest.Wait()
	o, l := e.counts()
	require.Equal(t, []int{opened, live}, []int{o, l}, "opened and live")
}

func TestSpareIsUsedOnceAndReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		p := e.pool(2)
		e.requireCounts(t, 2, 2)
		a, err := p.Take(t.Context())
		require.NoError(t, err)
		b, err := p.Take(t.Context())
		require.NoError(t, err)
		require.NotEqual(t, a.ID(), b.ID())
		e.requireCounts(t, 4, 4)
		require.NoError(t, a.Close(t.Context()))
		require.NoError(t, b.Close(t.Context()))
		e.requireCounts(t, 4, 2)
		require.NoError(t, p.Close(t.Context()))
		e.requireCounts(t, 4, 0)
	})
}

func TestSpareIsDiscarded(t *testing.T) {
	for name, spoil := range map[string]func(*engine){
		"when image or root changed": func(e *engine) { e.print.Store("b") },
		"when it ended": func(e *engine) {
			e.mu.Lock()
			defer e.mu.Unlock()
			for _, i := range e.live {
				_ = i.Conn.Close()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEngine()
				p := e.pool(1)
				e.requireCounts(t, 1, 1)
				old := p.first()
				spoil(e)
				synctest.Wait()
				box, err := p.Take(t.Context())
				require.NoError(t, err)
				require.NotEqual(t, old, box.ID())
				require.NoError(t, box.Close(t.Context()))
				require.NoError(t, p.Close(t.Context()))
				_, live := e.counts()
				require.Zero(t, live)
			})
		})
	}
}

func TestOldSpareIsReplacedBehindTheScenes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		p := e.pool(1)
		e.requireCounts(t, 1, 1)
		old := p.first()
		time.Sleep(MaxAge + time.Second) // fake time
		e.requireCounts(t, 2, 1)
		require.NotEqual(t, old, p.first())
		require.NoError(t, p.Close(t.Context()))
		e.requireCounts(t, 2, 0)
	})
}

func TestColdWithoutSpares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		p := e.pool(0)
		e.requireCounts(t, 0, 0)
		box, err := p.Take(t.Context())
		require.NoError(t, err)
		require.NoError(t, box.Close(t.Context()))
		require.NoError(t, p.Close(t.Context()))
		e.requireCounts(t, 1, 0)
	})
}

// An engine that fails is tried again after a pause, not in a loop, and a call
// gets its error.
func TestFailingEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		e.fail = errors.New("no engine")
		p := e.pool(1)
		e.requireCounts(t, 0, 0)
		_, err := p.Take(t.Context())
		require.ErrorContains(t, err, "no engine")
		e.mu.Lock()
		e.fail = nil
		e.mu.Unlock()
		time.Sleep(retryAfter + time.Second) // fake time
		e.requireCounts(t, 1, 1)
		require.NoError(t, p.Close(t.Context()))
		e.requireCounts(t, 1, 0)
	})
}
