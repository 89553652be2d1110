package codex

import (
	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
)

// privateIDs is how ids of our own requests to Codex begin. A request of the
// client with such an id is refused.
const privateIDs = "mcp-agents/"

// Request takes a request of the client: a call of ours is checked, and answered
// here unless it runs a turn.
func (b *bridge) Request(base proxy.Request, m mcp.Message, env mcp.Envelope) {
	r := &request{Request: base}
	b.forgetEnd(r.Key)
	b.Accept(r)
	p := proxy.Pending[*request]{Message: m, Request: r}
	if c := b.tools.callOf(m.Raw, env); c != nil {
		if v := c.validate(b.cfg.CheckCwd); v != nil {
			b.Log.Warn("rejected invalid " + c.tool.name + " call; fields: " + v.fields())
			b.Answer(r, &mcp.Response{Error: &mcp.Error{Code: mcp.CodeInvalidParams,
				Message: "mcp-agents: invalid arguments for " + c.tool.name, Data: v}}, nil)
			return
		}
		if b.callLocally(r, c, m) {
			return
		}
		r.turn = b.newTurn(r, c)
		b.tellProgress(r, c.token)
		p.Translate = b.translate(c)
	}
	b.Forward(p)
}

// Other takes a message that needs no answer. An invalid call is dropped, and so
// is one whose answer the client would not get.
func (b *bridge) Other(m mcp.Message, env mcp.Envelope) {
	p := proxy.Pending[*request]{Message: m}
	if env.IsResponse() && !b.answersQuestion(env.ID.Key()) {
		return // Codex has its answer from here
	}
	if c := b.tools.callOf(m.Raw, env); c != nil {
		if v := c.validate(b.cfg.CheckCwd); v != nil {
			b.Log.Warn("dropped invalid " + c.tool.name + " notification; fields: " + v.fields())
			return
		}
		if c.tool.name != c.tool.native || b.loginInvalid {
			return
		}
		p.Translate = b.translate(c)
	}
	b.Forward(p)
}

// Cancel takes a cancel of an open request. It goes to Codex unless Codex knows already.
func (b *bridge) Cancel(r *request, m mcp.Message) {
	if r.poll != nil {
		r.poll()
		b.Settle(r)
		return
	}
	if b.Withdraw(r) {
		b.Settle(r)
		return
	}
	if b.step(r, canceled) {
		b.Forward(proxy.Pending[*request]{Message: m})
	}
}

// translate returns what makes a call the one that Codex gets.
func (b *bridge) translate(c *call) func([]byte) []byte {
	return func([]byte) []byte {
		message, logs := transform{b.cfg.Goal, b.session.child.Agents}.apply(c)
		for _, line := range logs {
			b.Log.Info(line)
		}
		return message
	}
}
