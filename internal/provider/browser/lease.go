package browser

import (
	"context"
	"errors"
	"fmt"

	"mcpagents/internal/provider/browser/lease"
)

// maxAttempts is how often a browser is asked for when the control port proves
// to be taken.
const maxAttempts = 3

// generation is one lease. Two generations are told apart by their addresses.
type generation struct {
	record   lease.Record
	identity string // of the browser when it was lent
}

// acquire begins to get a browser.
func (b *bridge) acquire() {
	b.attempts = 0
	b.attempt()
}

// attempt asks for a browser on the port that the downstream connects to.
func (b *bridge) attempt() {
	b.attempts++
	req := lease.Request{Session: b.cfg.Session, LocalPort: b.port, Viewport: b.cfg.Viewport, AppPort: b.cfg.AppPort}
	b.Outside(func(ctx context.Context) func() {
		rec, err := b.cfg.Lessor.Acquire(ctx, req)
		var identity string
		if err == nil {
			if identity, err = b.cfg.Lessor.Identity(ctx, rec); err != nil {
				err = &lease.ProvisioningError{Text: "the browser does not say who it is (" + err.Error() + ")"}
			}
		}
		return func() { b.acquireEnded(&generation{rec, identity}, err) }
	})
}

// acquireEnded takes a browser, or why there is none.
func (b *bridge) acquireEnded(g *generation, err error) {
	if err == nil || g.record.Generation != "" {
		b.lease = g
	}
	switch {
	case b.Outcome != nil: // the shutdown gives it back
	case err == nil:
		b.attempts = 0
		b.step(acquired)
	case errors.Is(err, lease.ErrPortTaken) && b.lease == nil:
		b.portTaken()
	default:
		b.refuse(b.unavailable(err))
	}
}

// portTaken goes on with another port, which takes another downstream.
func (b *bridge) portTaken() {
	switch {
	case b.attempts == maxAttempts:
		b.refuse(provisioningFailed(fmt.Sprintf("the local control port was taken in each of %d attempts. Try the call again.", maxAttempts)))
	case b.HalfLine():
		b.refuse(provisioningFailed("the local control port was taken, and the downstream cannot be started anew with another one: " +
			"it has left a message to the client half written (unsafe frame boundary). Try the call again."))
	default:
		b.Log.Info("browser lease: the local control port was taken; trying another one", "attempt", b.attempts)
		b.restart(0, func(err error) {
			if err != nil {
				b.refuse(provisioningFailed(notStarted(err)))
				return
			}
			b.attempt()
		})
	}
}

// refuse answers every call that waits for a browser.
func (b *bridge) refuse(r result) {
	b.refuseHeld(r)
	if b.lease != nil {
		b.step(useless)
		return
	}
	b.step(refused)
}

// unavailable is what callers are told of a failed Acquire.
func (b *bridge) unavailable(err error) result {
	if none, ok := errors.AsType[*lease.UnavailableError](err); ok {
		detail := none.Detail
		if detail == "" {
			detail = none.Text
		}
		b.Log.Warn("browser lease unavailable: " + detail)
		return unavailableResult(none)
	}
	text := err.Error()
	if failed, ok := errors.AsType[*lease.ProvisioningError](err); ok {
		text = failed.Text
	}
	b.Log.Warn("browser lease failed: " + err.Error())
	return provisioningFailed("browser provisioning failed: " + text)
}

// admit lets through what waits: the browser is the right one now.
func (b *bridge) admit() {
	if b.hung {
		// A call of an earlier browser got stuck while this one was got.
		b.state = recovering
		b.recover()
		return
	}
	for _, r := range b.Waiting() {
		r.cleared = true
	}
}

// check looks whether the browser is still the one that was lent.
func (b *bridge) check() {
	b.checks++
	n, g := b.checks, b.lease
	b.identify(func(id string, err error) {
		if n != b.checks || b.lease != g || b.state != checking && b.state != recovering {
			return // something else has decided
		}
		why := difference(g.identity, id, err)
		if why == "" {
			b.step(verified)
			return
		}
		if b.state == recovering {
			b.Log.Warn("browser reconnect failed identity verification")
			b.refuseHeld(replacedBefore("the downstream was started anew after a call that took too long, and then " + why + notExecuted))
		} else {
			b.refuseHeld(replacedBefore(why + notExecuted))
		}
		b.disprove(why)
	})
}

// difference is why a browser that calls itself id is not the one whose
// identity was wanted, empty if it is.
func difference(wanted, id string, err error) string {
	switch {
	case err != nil:
		return "the browser's identity could not be verified (" + err.Error() + ")"
	case id != wanted:
		return "the browser's UUID changed: it is another browser than the one that was lent"
	}
	return ""
}

// disprove gives up a browser that cannot be trusted.
func (b *bridge) disprove(why string) {
	b.Log.Warn("browser lease identity lost: " + why)
	b.refuseWaiting()
	b.step(disproved)
}

// leaseLost gives up a browser that its lessor says is gone.
func (b *bridge) leaseLost() {
	b.Log.Warn("browser lease identity lost: the lessor says that the lease is gone")
	b.refuseWaiting()
	b.step(lost)
}

// refuseWaiting answers the calls that wait for a check which has become idle.
func (b *bridge) refuseWaiting() {
	if b.state == checking || b.state == recovering {
		b.refuseHeld(replacedBefore("the browser was released while this call waited" + notExecuted))
	}
}

// giveBack releases the browser. A release that fails is the lessor's to mend.
func (b *bridge) giveBack() {
	g := b.lease
	b.lease = nil
	b.Outside(func(ctx context.Context) func() {
		err := b.cfg.Lessor.Release(context.WithoutCancel(ctx), g.record, lease.Idle)
		return func() {
			b.releaseEnded(lease.Idle, err)
			b.step(released)
		}
	})
}

func (b *bridge) releaseEnded(reason lease.Reason, err error) {
	if err != nil {
		b.Log.Warn(fmt.Sprintf("browser lease release (%s) was nonfatal: %v", reason, err))
	}
}

// forget drops a lease that there is nothing left of.
func (b *bridge) forget() { b.lease = nil }

// recover starts the downstream anew on the browser that stays.
func (b *bridge) recover() {
	b.checks++ // one that is under way has nothing to say any more
	b.restart(b.port, func(err error) {
		switch {
		case b.state != recovering:
		case err != nil:
			b.Log.Warn("browser reconnect failed: " + err.Error())
			b.refuseHeld(replacedBefore("the downstream did not recover from a call that took too long: " + notStarted(err) + notExecuted))
			b.disprove("the downstream did not recover")
		default:
			b.check()
		}
	})
}

// identify asks the browser who it is. What comes while an answer is under way
// waits for the next one: that answer may be older.
func (b *bridge) identify(then func(id string, err error)) {
	b.askers = append(b.askers, then)
	if !b.reading {
		b.readIdentity()
	}
}

func (b *bridge) readIdentity() {
	g, askers := b.lease, b.askers
	b.askers = nil
	if g == nil {
		for _, then := range askers {
			then("", errors.New("it was released"))
		}
		return
	}
	b.reading = true
	b.Clock.Cancel(b.idle)
	b.Outside(func(ctx context.Context) func() {
		id, err := b.cfg.Lessor.Identity(ctx, g.record)
		return func() {
			b.reading = false
			for _, then := range askers {
				then(id, err)
			}
			if len(b.askers) > 0 && !b.reading {
				b.readIdentity()
			}
			b.armIdle()
		}
	})
}

// armIdle starts the time without anything from the downstream anew. It does not
// run while an identity is read or the client does not read.
func (b *bridge) armIdle() {
	b.Clock.Cancel(b.idle)
	if b.state != ready || b.reading || b.cfg.Times.Idle == 0 || b.Out.Full() {
		return
	}
	b.idle = b.Clock.After(b.cfg.Times.Idle, func() {
		if b.Out.Full() {
			return // armed again when the client reads
		}
		b.Log.Info("browser lease: giving back a browser that was not used", "seconds", b.cfg.Times.Idle.Seconds())
		b.step(unused)
	})
}
