package codex

import (
	"cmp"
	"fmt"
	"slices"

	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
)

// finish ends the event loop. The first verdict counts.
func (b *bridge) finish(v proxy.Outcome) {
	if b.verdict == nil {
		b.verdict = &v
	}
}

// clientGone winds down after the end of the client's messages.
func (b *bridge) clientGone() {
	b.gone, b.client.Messages, b.client.Died = true, nil, nil
	b.alarms.Cancel(b.idle)
	if b.phase != running {
		// Nobody waits for a launch any more, but a client that sent its
		// questions at once still reads the answers.
		for _, p := range b.takeWaiting() {
			if p.request != nil && proxy.Handshake(p.request.method) {
				b.keepInitialize(p)
				b.answerLocally(p.request, nil)
			}
		}
		b.finish(proxy.Outcome{Reason: "client disconnected"})
		return
	}
	b.cancelForGone()
	b.session.Input.Close()
	b.alarms.After(b.cfg.ClientGoneGrace, func() {
		b.finish(proxy.Outcome{Reason: "client disconnected and codex did not end"})
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

// childEnded takes how the child ended. Its output may still be under way.
func (b *bridge) childEnded(e proxy.Ending) {
	s := b.session
	s.End = &e
	switch {
	case e.Err != nil:
		b.log.Warn("codex was lost", "error", e.Err)
	case e.Exit.Signal != 0:
		b.log.Info("codex killed by " + signalName(e.Exit.Signal))
	default:
		b.log.Info(fmt.Sprintf("codex exited with code %d", e.Exit.Code))
	}
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
	switch {
	case b.gone:
		b.finish(proxy.Outcome{Code: s.End.Code(), Reason: "client disconnected, " + s.ending()})
	case s.Served:
		b.finish(proxy.Outcome{Code: s.End.Code(), Reason: s.ending(), Emit: true})
	default:
		b.fail(s.failure())
	}
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
func (b *bridge) shutdown() {
	b.log.Info("codex passthrough finalize: " + b.verdict.Reason)
	if b.verdict.Emit {
		b.takeHeld()
		b.abortOpen()
	}
	if line := b.ledger.Rest(); line != "" {
		b.log.Warn(line)
	}
	proxy.Flush(b.out, b.log)
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
		b.closeSession(b.session)
	}
}

// takeHeld takes what a Codex that is still there has written of a line, if
// that is a whole message which only lacks its LF.
func (b *bridge) takeHeld() {
	if b.session == nil || b.out.Full() {
		return
	}
	if p, ok := b.session.Held(); ok {
		b.fromLine(p)
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
			b.log.Info(fmt.Sprintf("recovered %s codex request %s during teardown", endWord(r.end), r.id.Raw))
			b.answerFromEnd(r)
		case r.job != nil:
			b.settle(r)
			r.job.Fail("bridge stopped: "+b.verdict.Reason, "")
		case r.state.wanted():
			b.respondError(r, mcp.CodeAborted, "mcp-agents: codex pass-through aborted before responding ("+b.verdict.Reason+
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
func (b *bridge) closeSession(s *session) {
	if err := s.Close(); err != nil {
		b.log.Error("the sandbox of codex was not closed cleanly", "error", err)
	}
}
