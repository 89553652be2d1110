package codex

import (
	"time"

	"mcpagents/internal/agent"
	"mcpagents/internal/agent/job"
	"mcpagents/internal/mcp"
)

// callLocally answers a call of a tool that is ours, and reports whether it is
// one. The calls that run a turn are refused here once the login is not valid.
func (b *bridge) callLocally(r *request, c *call, m mcp.Message) bool {
	id := c.text("jobId")
	switch c.tool.name {
	case toolCodex, toolReply, toolStart, toolReplyStart:
		if b.loginInvalid {
			b.Respond(r, loginResult(""))
			return true
		}
		if c.tool.name != c.tool.native {
			j, answer := b.startJob(c, m.Mode)
			var undo func()
			if j != nil {
				undo = j.Cancel
			}
			b.Answer(r, &mcp.Response{Result: answer}, undo)
			return true
		}
		return false
	case toolStatus:
		b.callStatus(r, id, c)
	case toolCommentary:
		b.Respond(r, b.jobs.Commentary(id, c.number("offset")))
	case toolResult:
		b.Respond(r, b.jobs.Result(id, c.number("offset")))
	case toolCancel:
		b.Respond(r, b.jobs.Cancel(id))
	case toolPeek:
		b.Respond(r, b.peek(agent.Filter{Cwd: c.text("cwd"), Thread: c.text("threadId"), Request: c.text("requestId")}))
	}
	return true
}

// callStatus answers a status call, perhaps later. A cancel of the call ends
// only the call.
func (b *bridge) callStatus(r *request, id string, c *call) {
	wait := b.jobs.DefaultWait()
	if raw, ok := c.raw("wait_ms"); ok {
		wait, _ = job.Codex.Wording.WaitTime(raw)
	}
	r.poll = func() {} // until it is known: the answer may come at once
	forget := b.jobs.Status(id, c.number("cursor"), wait, func(a job.Answer) {
		r.poll = nil
		b.Respond(r, a)
	})
	if r.poll != nil {
		r.poll = forget
	}
}

// peek is what the caller may know of running turns.
func (b *bridge) peek(f agent.Filter) any {
	var turns []*agent.Record
	for _, r := range b.InOrder() {
		if r.turn != nil && r.state != finishing && r.state != lapsed {
			turns = append(turns, r.turn)
		}
	}
	p := agent.Look(turns, f, b.ledger.Count())
	return job.Answer{Text: p.Text("codex"), Structured: mcp.Encode(p)}
}

// after is the bridge's clock for what runs in its event loop.
func (b *bridge) after(d time.Duration, call func()) (cancel func()) {
	a := b.Clock.After(d, call)
	return func() { b.Clock.Cancel(a) }
}
