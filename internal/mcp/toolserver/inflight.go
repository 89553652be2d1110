package toolserver

import (
	"context"
	"errors"
	"sync"

	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/stdio"
)

// Causes of the end of a call's context, beside the reason of the server's stop.
var (
	// ErrCancelled says that the client cancelled the call. Its result is
	// dropped.
	ErrCancelled = errors.New("cancelled by the client")

	// ErrClientGone says that the client left. A result is still written, in
	// case something reads what the client no longer does.
	ErrClientGone = errors.New("the client is gone")
)

// request is one request from its arrival until its handler has returned.
type request struct {
	key        string // of its id
	ctx        context.Context
	end        context.CancelCauseFunc // of ctx
	cancelable bool
	duplicate  bool // its id was in use: it is refused and not in the table
}

// inflight is the table of requests. Entries are made on the reading goroutine,
// so that a cancel finds every request that came before it.
type inflight struct {
	work context.Context // parent of the requests' contexts

	mu      sync.Mutex
	open    map[string]*request         // by key; gone once answered or cancelled
	arrived map[*stdio.Request]*request // not yet taken by their handlers
	running int                         // tools at work, of cancelled calls too
	stopped bool
	idle    chan struct{} // closed when stopped and nothing is running
}

func newInflight(work context.Context) *inflight {
	return &inflight{
		work:    work,
		open:    map[string]*request{},
		arrived: map[*stdio.Request]*request{},
		idle:    make(chan struct{}),
	}
}

// arrive notes a request in the order of arrival.
func (t *inflight) arrive(req *stdio.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &request{key: req.ID.Key(), cancelable: req.Method != methodInitialize}
	r.ctx, r.end = context.WithCancelCause(t.work)
	t.arrived[req] = r
	if _, taken := t.open[r.key]; taken {
		r.duplicate = true
		return
	}
	t.open[r.key] = r
}

// take hands the noted request to its handler.
func (t *inflight) take(req *stdio.Request) *request {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.arrived[req]
	delete(t.arrived, req)
	return r
}

// cancel ends the request with that id and frees the id. It reports false, and
// has changed nothing, if there is none that can be cancelled.
func (t *inflight) cancel(id mcp.ID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.open[id.Key()] // an unusable id has no key, and no entry has none
	if r == nil || !r.cancelable {
		return false
	}
	delete(t.open, r.key)
	r.end(ErrCancelled)
	return true
}

// finish frees the id of a request whose answer is ready. It reports false if
// the request was cancelled: the answer must then not be written.
func (t *inflight) finish(r *request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open[r.key] != r {
		return false
	}
	delete(t.open, r.key)
	return true
}

// begin counts a tool as running. It reports false once the server stops.
func (t *inflight) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return false
	}
	t.running++
	return true
}

// done ends what begin began.
func (t *inflight) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	t.checkIdle()
}

// stop makes begin refuse. The channel is closed when no tool is running.
func (t *inflight) stop() (idle <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	t.checkIdle()
	return t.idle
}

func (t *inflight) checkIdle() {
	if t.stopped && t.running == 0 {
		close(t.idle) // once: begin refuses from now on, so running stays 0
	}
}
