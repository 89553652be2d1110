package codex

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"mcpagents/internal/relay"
	"mcpagents/internal/stdio"
	"mcpagents/internal/wire"
)

// Bounds of the wind-down.
const (
	// drainTime is how long the end of a child's output is waited for after
	// the child, and how long the client may take to read what is queued.
	drainTime = 2 * time.Second
	// closeTime bounds the destruction of a sandbox.
	closeTime = 30 * time.Second
)

// verdict is how a bridge ends.
type verdict struct {
	code   int
	reason string
	// emit says that requests that are still open get an error.
	emit bool
}

// finish ends the event loop. The first verdict counts.
func (b *bridge) finish(v verdict) {
	if b.verdict == nil {
		b.verdict = &v
	}
}

// stopped ends the bridge because its context ended.
func (b *bridge) stopped(cause error) {
	code := 1
	if s, ok := errors.AsType[stdio.Signal](cause); ok {
		code = s.Status()
	}
	b.finish(verdict{code: code, reason: cause.Error()})
}

// outputFailed ends the bridge because the client takes nothing more.
func (b *bridge) outputFailed(err error) {
	if errors.Is(err, stdio.ErrOutputClosed) {
		b.finish(verdict{reason: "client closed its input"})
		return
	}
	b.log.Error("write to the client failed", "error", err)
	b.finish(verdict{code: 1, reason: "output error"})
}

// clientGone winds down after the end of the client's messages.
func (b *bridge) clientGone() {
	b.gone, b.client, b.orphan = true, nil, nil
	b.alarms.Cancel(b.idle)
	if b.phase != running {
		// Nobody waits for a launch any more, but a client that sent its
		// questions at once still reads the answers.
		for _, p := range b.takeWaiting() {
			if p.request != nil && handshake(p.request.method) {
				b.keepInitialize(p)
				b.answerLocally(p.request, nil)
			}
		}
		b.finish(verdict{reason: "client disconnected"})
		return
	}
	b.cancelForGone()
	b.session.input.Close()
	b.alarms.After(b.cfg.ClientGoneGrace, func() {
		b.finish(verdict{reason: "client disconnected and codex did not end"})
	})
}

// cancelForGone cancels what the client has left. Answers that come all the
// same still go out: a client that sent its questions at once reads them.
func (b *bridge) cancelForGone() {
	for _, j := range b.jobs.Active() {
		b.log.Info(fmt.Sprintf("client disconnected; cancelling background job %s (state=%s, thread_id=%s)", j.ID, j.State(), j.Thread))
		j.Cancel()
	}
	for _, r := range b.inOrder() {
		b.silence(r)
		b.alarms.Cancel(r.hard)
		// MCP forbids to cancel initialize.
		if r.job == nil && r.poll == nil && r.state.wanted() && r.method != "initialize" {
			b.sendCancel(r, "client disconnected")
		}
	}
}

func cancelMessage(id stdio.ID, reason string) []byte {
	return append(notification("notifications/cancelled", struct {
		RequestID stdio.ID `json:"requestId"`
		Reason    string   `json:"reason"`
	}{id, reason}), '\n')
}

// childEnded takes how the child ended. Its output may still be under way.
func (b *bridge) childEnded(e ending) {
	s := b.session
	s.end = &e
	switch {
	case e.err != nil:
		b.log.Warn("codex was lost", "error", e.err)
	case e.exit.Signal != 0:
		b.log.Info("codex killed by " + signalName(e.exit.Signal))
	default:
		b.log.Info(fmt.Sprintf("codex exited with code %d", e.exit.Code))
	}
	b.alarms.After(drainTime, func() {
		if b.session == s {
			b.sessionEnded()
		}
	})
	b.outputEnded()
}

// outputEnded goes on when the child and all of its output have ended.
func (b *bridge) outputEnded() {
	if s := b.session; s.end != nil && s.stdoutEnded && s.stderrEnded {
		b.sessionEnded()
	}
}

// sessionEnded takes the end of a child. What it wrote has come, or is not
// waited for any longer.
func (b *bridge) sessionEnded() {
	s := b.session
	switch {
	case b.gone:
		b.finish(verdict{code: s.end.code(), reason: "client disconnected, " + s.end.reason()})
	case s.served:
		b.finish(verdict{code: s.end.code(), reason: s.end.reason(), emit: true})
	default:
		b.fail(s.failure())
	}
}

// code is the exit status of the bridge for the child's end: its own, or 128+n
// for the signals that users send, and 128 for others.
func (e *ending) code() int {
	if e.err != nil {
		return 1
	}
	switch e.exit.Signal {
	case 0:
		return e.exit.Code
	case 1, 2, 9, 15:
		return 128 + e.exit.Signal
	}
	return 128
}

func (e *ending) reason() string {
	switch {
	case e.err != nil:
		return "the sandbox of codex was lost: " + e.err.Error()
	case e.exit.Reason == wire.ReasonMemory:
		return "codex was killed because its sandbox ran out of memory; raise --memory"
	case e.exit.Reason == wire.ReasonLifetime:
		return "codex reached the lifetime of its sandbox"
	case e.exit.Reason == wire.ReasonSpawnFailed:
		return "codex could not be started: " + e.exit.Text
	case e.exit.Signal != 0:
		return "codex killed by " + signalName(e.exit.Signal)
	}
	return fmt.Sprintf("codex exited with code %d", e.exit.Code)
}

// signalName names the signals of a Linux sandbox, whatever this program runs on.
func signalName(n int) string {
	names := map[int]string{1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS",
		8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE", 15: "SIGTERM"}
	if name, ok := names[n]; ok {
		return name
	}
	return fmt.Sprintf("signal %d", n)
}

// shutdown answers what is owed, writes what is queued, destroys the child and
// waits for every goroutine of the bridge.
func (b *bridge) shutdown(ctx context.Context) {
	b.log.Info("codex passthrough finalize: " + b.verdict.reason)
	if b.verdict.emit {
		b.takeHeld()
		b.abortOpen()
	}
	if line := b.ledger.Rest(); line != "" {
		b.log.Warn(line)
	}
	b.out.Finish()
	flushing, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	if err := b.out.Flush(flushing); err != nil && !errors.Is(err, stdio.ErrOutputClosed) {
		b.log.Warn("answers were not written", "error", err)
	}
	cancel()
	b.stopLaunch()
	switch b.phase {
	case launching:
		if r := <-b.launched; r.child != nil {
			b.session = newSession(r.child, b.launches)
		}
	case closing:
		<-b.closed
	}
	if b.session != nil {
		b.closeSession(ctx, b.session)
	}
}

// takeHeld takes what a Codex that is still there has written of a line, if
// that is a whole message which only lacks its LF.
func (b *bridge) takeHeld() {
	s := b.session
	if s == nil || s.stdoutEnded || b.out.Full() {
		return
	}
	if held := s.splitter.Held(); json.Valid(held) {
		b.fromLine(relay.Piece{Data: held, First: true, Cut: true})
	}
}

// abortOpen settles every request that nobody will answer any more: from the
// end of its turn, if that was reported, else by an error. Jobs come first, so
// that those who wait for one hear of it.
func (b *bridge) abortOpen() {
	all := b.inOrder()
	slices.SortStableFunc(all, func(x, y *request) int { return cmp.Compare(rank(x), rank(y)) })
	for _, r := range all {
		switch {
		case b.open[r.key] == nil: // answered meanwhile
		case r.unauthorized && r.state.wanted():
			b.failUnauthorized(r)
		case r.state == finishing || r.state == lapsed:
			b.log.Info(fmt.Sprintf("recovered %s codex request %s during teardown", r.end, r.id.Raw))
			b.answerFromEnd(r)
		case r.job != nil:
			b.settle(r)
			r.job.Fail("bridge stopped: "+b.verdict.reason, "")
		case r.state.wanted():
			b.respondError(r, stdio.CodeAborted, "mcp-agents: codex pass-through aborted before responding ("+b.verdict.reason+
				"); the request was still open: "+editsRemain+r.inThread())
		}
	}
}

// rank orders requests for the end: jobs, then turns that have ended.
func rank(r *request) int {
	switch {
	case r.job != nil:
		return 0
	case r.state == finishing || r.state == lapsed:
		return 1
	}
	return 2
}

// closeSession destroys the child of s and waits for its goroutines.
func (b *bridge) closeSession(ctx context.Context, s *session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	if err := s.close(ctx); err != nil {
		b.log.Error("the sandbox of codex was not closed cleanly", "error", err)
	}
}
