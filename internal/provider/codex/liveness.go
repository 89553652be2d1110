package codex

import (
	"fmt"
	"math"
	"time"

	"mcpagents/internal/mcp/proxy"
)

// Sent arms the deadlines of a request that Codex now has. Idle is renewed by
// the request's own events only; hard never is.
func (b *bridge) Sent(r *request) {
	r.heard = time.Now()
	t := b.cfg.Times
	if t.Idle > 0 {
		r.idle = b.Clock.After(t.Idle, func() { b.idleRang(r) })
	}
	r.hard = b.Clock.After(t.Hard, func() {
		r.late = label("hard", t.Hard)
		b.step(r, deadline)
	})
}

func label(which string, d time.Duration) string {
	return fmt.Sprintf("%s timeout (%.0fs)", which, math.Round(d.Seconds()))
}

// alive notes an event of r. The alarm looks at the time when it rings, so that
// a flood of events moves no alarm.
func (b *bridge) alive(r *request) { r.heard = time.Now() }

// idleRang fails r if it has been silent. It is not silent while the client
// owes an answer to Codex, or while nobody reads what Codex says because the
// client does not: their ends renew the deadline.
func (b *bridge) idleRang(r *request) {
	left := b.cfg.Times.Idle - time.Since(r.heard)
	switch {
	case r.state != open || r.asking > 0 || b.Out.Full():
	case left > 0:
		r.idle = b.Clock.After(left, func() { b.idleRang(r) })
	default:
		r.late = label("idle", b.cfg.Times.Idle)
		b.step(r, deadline)
	}
}

// renew starts the idle time of r anew.
func (b *bridge) renew(r *request) {
	if r.state != open || r.idle == nil {
		return
	}
	b.Clock.Cancel(r.idle)
	r.heard = time.Now()
	r.idle = b.Clock.After(b.cfg.Times.Idle, func() { b.idleRang(r) })
}

// Drained renews every idle time when the client reads again.
func (b *bridge) Drained() {
	for _, r := range b.Open {
		b.renew(r)
	}
}

// arm gives r a time for its state.
func (b *bridge) arm(r *request, d time.Duration) {
	r.grace = b.Clock.After(d, func() {
		if b.HalfLine() && b.Out.Full() { // the line may be whole by now: nobody looks
			b.arm(r, d)
			return
		}
		b.step(r, grace)
	})
}

// awaitLine gives a half-written line CancelGrace to come to its end.
func (b *bridge) awaitLine(r *request) {
	if r.state.wanted() {
		b.silence(r)
	} else {
		b.hush(r)
	}
	b.awaiting[r] = struct{}{}
	b.arm(r, b.cfg.Times.CancelGrace)
}

// watchLine waits for a half-written line within the limits that hold anyway:
// the hard deadline and the stall of a line.
func (b *bridge) watchLine(r *request) {
	b.awaiting[r] = struct{}{}
	b.WatchStall()
}

// lineEnded takes the end of a line for those who waited for it.
func (b *bridge) lineEnded(waited []*request) {
	b.LineEnded()
	for r := range b.holding {
		b.sendProgress(r, *r.held)
	}
	for _, r := range waited {
		if _, still := b.awaiting[r]; still {
			b.step(r, lineEnd)
		}
	}
}

// tearDown ends the bridge for r. A client that has gone waits for nothing.
func (b *bridge) tearDown(r *request) { b.endForWedge(r.teardownReason()) }

func (b *bridge) endForWedge(reason string) {
	if !b.Gone {
		b.Finish(proxy.Outcome{Code: 1, Reason: reason, Emit: true})
	}
}
