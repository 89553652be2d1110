package browser

import (
	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
)

// Beginnings of ids that are ours.
const (
	initializeIDs = "mcp-agents/browser/initialize/"
	questionIDs   = "mcp-agents/browser/downstream-request/"
)

// Request takes a request of the client.
func (b *bridge) Request(base proxy.Request, m mcp.Message, env mcp.Envelope) {
	r := &request{Request: base}
	r.browser = b.callsBrowser(m.Raw, env)
	_, r.page = mcp.Lookup(base.Message.Raw, "params", "cursor")
	r.hard = b.Clock.After(b.cfg.Times.Hard, func() { b.overdue(r) })
	b.Accept(r)
	b.Forward(proxy.Pending[*request]{Message: m, Request: r})
	if r.browser && b.Waits(r) {
		b.tellProgress(r, m.Raw)
	}
}

// callsBrowser reports whether a request calls a tool of the downstream. Before
// a list of them was seen, every name may be one.
func (b *bridge) callsBrowser(message []byte, env mcp.Envelope) bool {
	if env.Method != "tools/call" {
		return false
	}
	at, _ := mcp.Lookup(message, "params", "name")
	name, ok := mcp.Text(at.Of(message))
	return ok && (b.tools == nil || b.tools[name])
}

// Other takes a message that needs no answer. One that answers a question of the
// downstream goes to the child that asked.
func (b *bridge) Other(m mcp.Message, env mcp.Envelope) {
	p := proxy.Pending[*request]{Message: m}
	if env.IsResponse() {
		p.Translate = func(raw []byte) []byte { return b.answerFor(env.ID.Key(), raw) }
	}
	b.Forward(p)
}

// Cancel passes a cancel on if the downstream has got the request. Its answer, if
// it comes anyway, is still verified.
func (b *bridge) Cancel(r *request, m mcp.Message) {
	b.hush(r)
	if b.Withdraw(r) {
		b.Settle(r)
		b.Pump()
		return
	}
	r.cancelled = true
	if b.Phase == proxy.Running {
		b.Child.Input.Write(proxy.Line(m, m.Raw))
	}
}

// MayPass lets a browser call pass when the browser is ready for it, and begins
// what it waits for.
func (b *bridge) MayPass(p proxy.Pending[*request]) bool {
	switch {
	case b.state.holds():
		return false
	case b.Phase != proxy.Running || p.Request == nil || !p.Request.browser:
		return true
	case b.state == ready && p.Request.cleared:
		return true
	}
	b.step(wanted) // changes nothing while a browser is given back
	return false
}

// Sent notes the browser that a call goes to.
func (b *bridge) Sent(r *request) {
	b.stopProgress(r)
	if r.browser {
		r.generation = b.lease
	}
}

// refuseHeld answers the browser calls in the queue. The rest keeps its order.
func (b *bridge) refuseHeld(result result) {
	for _, r := range b.Take(func(r *request) bool { return r.browser }) {
		b.Respond(r, result)
	}
}
