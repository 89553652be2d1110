package browser

import (
	"context"
	"errors"
	"strings"

	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
	"mcpagents/internal/provider/browser/lease"
)

// finish ends the event loop. The first verdict counts.
func (b *bridge) finish(v proxy.Verdict) {
	if b.verdict == nil {
		b.verdict = &v
	}
}

// clientGone ends the bridge after the client's last message. A client that put
// the questions of its handshake at once still reads the answers; a call is not
// waited for, since its browser is given back.
func (b *bridge) clientGone() {
	b.gone, b.client.Messages = true, nil
	gone := proxy.Verdict{Reason: "client disconnected", Emit: true}
	if !b.expectsAnswers() {
		b.finish(gone)
		return
	}
	b.alarms.After(proxy.DrainTime, func() { b.finish(gone) })
}

// expectsAnswers reports whether a question of the handshake is open.
func (b *bridge) expectsAnswers() bool {
	for _, r := range b.open {
		if proxy.Handshake(r.method) {
			return true
		}
	}
	return false
}

// childEnded takes how the child ended. Its output may still be under way.
func (b *bridge) childEnded(e proxy.Ending) {
	s := b.session
	s.End = &e
	b.log.Info(s.ending())
	b.alarms.After(proxy.DrainTime, func() {
		if b.session == s {
			b.sessionEnded()
		}
	})
	b.outputEnded()
}

// outputEnded goes on when the child and all of its output have ended.
func (b *bridge) outputEnded() {
	if b.session.Over() {
		b.sessionEnded()
	}
}

// sessionEnded takes the end of a child. What it wrote has come, or is not
// waited for any longer.
func (b *bridge) sessionEnded() {
	s := b.session
	if s.Served {
		b.finish(proxy.Verdict{Code: s.End.Code(), Reason: s.ending(), Emit: true})
		return
	}
	text := "it ended before it answered initialize (" + s.ending() + ")"
	if tail := strings.TrimSpace(strings.Join(s.tail, "\n")); tail != "" {
		text += ": " + tail
	}
	b.fail(errors.New(text))
}

// shutdown answers what is owed, writes what is queued, kills the child, waits
// for everything that runs outside of the loop and gives the browser back.
func (b *bridge) shutdown() {
	b.log.Info("browser passthrough finalize: " + b.verdict.Reason)
	if b.verdict.Emit {
		b.takeHeld()
		b.abortOpen()
	}
	proxy.Flush(b.out, b.log)
	b.stopLaunch()
	b.stopAsks()
	for {
		if s := b.session; s != nil {
			b.session = nil
			b.closeSession(s)
		}
		if b.working == 0 {
			break
		}
		done := <-b.work
		b.working--
		done()
	}
	if g := b.lease; g != nil {
		b.releaseEnded(lease.Shutdown, b.cfg.Lessor.Release(context.WithoutCancel(b.ctx), g.record, lease.Shutdown))
	}
}

// takeHeld takes what a downstream that is still there has written of a line, if
// that is a whole message which only lacks its LF.
func (b *bridge) takeHeld() {
	if b.session == nil || b.out.Full() {
		return
	}
	if p, ok := b.session.Held(); ok {
		b.fromLine(p)
	}
}

// abortOpen answers every request that nobody will answer any more.
func (b *bridge) abortOpen() {
	for _, r := range b.inOrder() {
		switch {
		case b.open[r.key] != r: // answered meanwhile
		case r.cancelled:
			b.settle(r)
		case r.browser && r.forwarded:
			b.replace(r, "the bridge ended ("+b.verdict.Reason+") before its result was verified")
		default:
			b.respondError(r, mcp.CodeAborted, "browser pass-through request aborted before responding ("+b.verdict.Reason+")")
		}
	}
}

// closeSession kills the child of s and waits for its goroutines.
func (b *bridge) closeSession(s *session) {
	if err := s.Close(); err != nil {
		b.log.Error("chrome-devtools-mcp was not ended cleanly", "error", err)
	}
}
