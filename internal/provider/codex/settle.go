package codex

import (
	"fmt"

	"mcpagents/internal/agent"
	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
)

// This file holds what the transitions do.

// awaitAnswer waits for the answer of a turn that has ended.
func (b *bridge) awaitAnswer(r *request) {
	b.silence(r)
	b.arm(r, b.cfg.Times.TerminalGrace)
}

// stopTurn tells Codex to stop.
func (b *bridge) stopTurn(r *request) {
	b.hush(r)
	b.Clock.Cancel(r.hard)
	b.BeingAnswered(r)
	reason := "client cancelled the request"
	if r.job != nil {
		reason = "background job cancelled"
	}
	b.sendCancel(r, reason)
	if r.turn != nil {
		r.turn.Canceling = true
	}
	b.arm(r, b.cfg.Times.CancelGrace)
}

func (b *bridge) sendCancel(r *request, reason string) {
	if b.Child != nil {
		b.Child.Input.Write(proxy.Cancel(r.ID, "mcp-agents: "+reason))
	}
}

// expire fails r alone because a deadline passed.
func (b *bridge) expire(r *request) {
	b.sendCancel(r, r.late)
	b.giveUp(r, r.late)
	b.Suppress(r)
	if r.unauthorized {
		b.failUnauthorized(r)
		return
	}
	if r.job != nil {
		r.job.Fail("request "+r.late, "")
		return
	}
	b.RespondError(r, mcp.CodeAborted, "mcp-agents: codex pass-through request "+r.late+"; the bridge stayed connected. "+
		"Codex may go on: "+editsRemain+r.inThread())
}

// editsRemain is what the caller of a call without an answer must know.
const editsRemain = "edits that it made are in the working tree, verify it before you repeat the request."

func (r *request) inThread() string {
	if r.turn == nil || r.turn.Thread == "" {
		return ""
	}
	return " Codex thread: " + r.turn.Thread + "."
}

func (r *request) threadID() string {
	if r.turn == nil {
		return ""
	}
	return r.turn.Thread
}

// giveUp records a turn that may go on.
func (b *bridge) giveUp(r *request, why string) {
	if r.turn != nil {
		b.Log.Warn(b.ledger.Abandon(r.Key, string(r.ID.Raw), why, r.turn))
	}
}

// abandon settles a cancel that Codex did not acknowledge.
func (b *bridge) abandon(r *request) {
	b.giveUp(r, fmt.Sprintf("cancellation not acknowledged within %dms", b.cfg.Times.CancelGrace.Milliseconds()))
	b.Suppress(r)
	if r.job != nil {
		r.job.Canceled(fmt.Sprintf("canceled (codex did not acknowledge within %dms)", b.cfg.Times.CancelGrace.Milliseconds()))
	}
}

// confirm settles a cancel whose turn has ended. Codex 0.153.4 sends no answer
// then, and a command that the turn had started may go on.
func (b *bridge) confirm(r *request) {
	b.hush(r)
	b.rememberEnd(r.Key)
	if t := r.turn; t != nil {
		t.Over = true
		if len(t.Commands) > 0 {
			b.giveUp(r, fmt.Sprintf("its end was reported by %s, but not that of %d command(s) that it started", r.endKind, len(t.Commands)))
		}
	}
	if r.job == nil {
		b.Log.Debug("cancellation confirmed by " + r.endKind)
		return
	}
	if r.end == agent.Completed {
		r.job.Canceled("completed after cancellation was requested (" + r.endKind + "; result discarded)")
	} else {
		r.job.Canceled("canceled (confirmed by " + r.endKind + ")")
	}
}

// discard settles a cancel by the native answer, which nobody wants.
func (b *bridge) discard(r *request) {
	if r.job != nil {
		r.job.Canceled("canceled")
	}
}

// recoverAnswer answers r from the event that ended its turn, because Codex
// has not.
func (b *bridge) recoverAnswer(r *request) {
	b.Log.Info(fmt.Sprintf("settled %s codex request from terminal event for request %s (thread_id=%s)", endWord(r.end), r.ID.Raw, r.threadID()))
	b.Suppress(r)
	b.answerFromEnd(r)
}

// answerFromEnd answers r by what its turn's last event said.
func (b *bridge) answerFromEnd(r *request) {
	switch {
	case r.unauthorized:
		b.failUnauthorized(r)
	case r.end == agent.Completed && r.job != nil:
		b.Settle(r)
		r.job.Complete(r.lastMessage)
	case r.end == agent.Completed:
		b.Respond(r, turnResult(r.lastMessage, r.threadID()))
	case r.job != nil:
		b.Settle(r)
		r.job.Fail(abortText, "")
	default:
		b.RespondError(r, mcp.CodeAborted, "mcp-agents: "+abortText+" Any writes it made are in the tree; verify the workspace before you repeat it."+r.inThread())
	}
}

// endWord is the log's word for the end of a turn.
func endWord(end agent.Kind) string {
	switch end {
	case agent.Completed:
		return "completed"
	case agent.Aborted:
		return "aborted"
	}
	return "terminal" // by an event that is no end of its own
}

const abortText = "codex reported turn_aborted: the turn did not complete."

// turnResult is the result of a turn as Codex words it.
func turnResult(text, thread string) any {
	type content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	type structured struct {
		ThreadID string `json:"threadId"`
		Content  string `json:"content"`
	}
	return struct {
		Content    []content  `json:"content"`
		Structured structured `json:"structuredContent"`
	}{[]content{{"text", text}}, structured{thread, text}}
}

// deliver passes the native answer on.
func (b *bridge) deliver(r *request) {
	n := r.native
	switch {
	case r.turn != nil && (r.unauthorized || loginRefused(n.env.Result)):
		b.invalidateLogin()
		b.failUnauthorized(r)
	case r.job != nil:
		b.finishJob(r, n.env)
	default:
		if r.end == agent.Aborted {
			b.Log.Warn(fmt.Sprintf("WARNING native codex response settled aborted request %s; forwarding unchanged (thread_id=%s)", r.ID.Raw, r.threadID()))
		}
		if r.Method == "tools/list" && n.env.Result != nil {
			result, _ := mcp.Lookup(n.piece.Data, "result")
			n.piece.Data = b.tools.curate(n.piece.Data, result)
		}
		b.pass(n.piece, r.Framed)
	}
}
