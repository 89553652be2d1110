package codex

import (
	"cmp"
	"fmt"
	"slices"

	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
)

// ClientGone cancels what the client has left, and gives Codex time to end.
func (b *bridge) ClientGone() {
	if b.Phase == proxy.Running {
		b.cancelForGone()
	}
	b.WindDown(b.cfg.ClientGoneGrace)
}

// cancelForGone cancels what the client has left. Answers that come all the
// same still go out: a client that sent its questions at once reads them.
func (b *bridge) cancelForGone() {
	for _, j := range b.jobs.Active() {
		b.Log.Info(fmt.Sprintf("client disconnected; cancelling background job %s (state=%s, thread_id=%s)", j.ID, j.State(), j.Thread))
		j.Cancel()
	}
	for _, r := range b.InOrder() {
		b.silence(r)
		b.Clock.Cancel(r.hard)
		// MCP forbids to cancel initialize.
		if r.job == nil && r.poll == nil && r.state.wanted() && r.Method != "initialize" {
			b.sendCancel(r, "client disconnected")
		}
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

// Abort settles every request that nobody will answer any more: from the
// end of its turn, if that was reported, else by an error. Jobs come first, so
// that those who wait for one hear of it.
func (b *bridge) Abort(reason string) {
	all := b.InOrder()
	slices.SortStableFunc(all, func(x, y *request) int { return cmp.Compare(rank(x), rank(y)) })
	for _, r := range all {
		switch {
		case b.Open[r.Key] == nil: // answered meanwhile
		case r.unauthorized && r.state.wanted():
			b.failUnauthorized(r)
		case r.state == finishing || r.state == lapsed:
			b.Log.Info(fmt.Sprintf("recovered %s codex request %s during teardown", endWord(r.end), r.ID.Raw))
			b.answerFromEnd(r)
		case r.job != nil:
			b.Settle(r)
			r.job.Fail("bridge stopped: "+reason, "")
		case r.state.wanted():
			b.RespondError(r, mcp.CodeAborted, "mcp-agents: codex pass-through aborted before responding ("+reason+
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
