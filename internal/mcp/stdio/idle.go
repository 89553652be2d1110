package stdio

import (
	"sync"
	"time"
)

// DefaultIdleTimeout is the library's idle time. A server whose calls run long
// passes 0 instead: its client sends nothing meanwhile and does not restart it.
const DefaultIdleTimeout = 10 * time.Minute

// IdleTimer calls a function once when nothing happened for a while. Time
// counts from the last of: its start, a message, the end of the last open
// request. It never fires while a request is open or busy says so.
//
// It exists because a client that hangs keeps its end of the pipe open, so that
// no end of input ever comes.
type IdleTimer struct {
	after  time.Duration
	busy   func() bool
	expire func()

	mu      sync.Mutex
	timer   *time.Timer // nil: off, stopped or expired
	last    time.Time
	open    int
	pending sync.WaitGroup // running callbacks
}

// StartIdleTimer starts a timer that calls expire on a goroutine of its own;
// after of 0 or less gives a timer that never does. busy may be nil; it is asked
// only when the time is over, and a yes starts the time anew.
func StartIdleTimer(after time.Duration, busy func() bool, expire func()) *IdleTimer {
	t := &IdleTimer{after: after, busy: busy, expire: expire, last: time.Now()}
	if after > 0 {
		t.mu.Lock()
		t.timer = time.AfterFunc(after, t.fire)
		t.mu.Unlock()
	}
	return t
}

// Touch counts as a message.
func (t *IdleTimer) Touch() { t.change(0) }

// Begin opens a request; each Begin needs one End.
func (t *IdleTimer) Begin() { t.change(1) }

// End closes a request.
func (t *IdleTimer) End() { t.change(-1) }

func (t *IdleTimer) change(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open += n
	t.last = time.Now()
}

// Stop ends the timer and waits for a callback that already runs; expire must
// therefore not call it.
func (t *IdleTimer) Stop() {
	t.mu.Lock()
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	t.mu.Unlock()
	t.pending.Wait()
}

// fire runs when the time may be over. Messages only note their time, so it
// may find that there is time left.
func (t *IdleTimer) fire() {
	t.mu.Lock()
	if t.timer == nil {
		t.mu.Unlock()
		return
	}
	t.pending.Add(1)
	defer t.pending.Done()
	t.mu.Unlock()

	// busy may take locks of its owner, who may be calling us: ask it unlocked.
	busy := t.busy != nil && t.busy()

	t.mu.Lock()
	left := t.after - time.Since(t.last)
	if busy || t.open > 0 {
		left = t.after
	}
	if t.timer == nil {
		t.mu.Unlock()
		return
	}
	if left > 0 {
		t.timer.Reset(left)
		t.mu.Unlock()
		return
	}
	t.timer = nil
	t.mu.Unlock()
	t.expire()
}
