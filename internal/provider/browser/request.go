package browser

import (
	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
)

// request is a request of the client that has no answer yet.
type request struct {
	proxy.Request
	browser    bool        // it is a call of a tool of the downstream
	page       bool        // it asks for a later page of tools/list
	cleared    bool        // the browser was looked at since it began to wait
	cancelled  bool        // the client wants no answer any more
	generation *generation // of a browser call: the lease when it was forwarded
	native     *reply      // the downstream's answer, while it is verified

	hard     *proxy.Alarm
	progress *progress // what its caller is told while it waits; nil if nothing
}

// reply is an answer of the downstream.
type reply struct {
	piece proxy.Piece
	env   mcp.Envelope
}

// Reopen makes it a request that waits for an answer: the client has used its id again.
func (r *request) Reopen() { r.cancelled = false }

// Settled stops what runs for a request. A client that has gone waits for the
// answers of its handshake only.
func (b *bridge) Settled(r *request) {
	b.stopProgress(r)
	b.Clock.Cancel(r.hard)
	if b.Gone && !b.expectsAnswers() {
		b.Finish(proxy.Outcome{Reason: "client disconnected", Emit: true})
	}
}
