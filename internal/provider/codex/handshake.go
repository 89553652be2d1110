package codex

import (
	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
)

// Tools is the list for a client that asks before a Codex is there.
func (b *bridge) Tools() []byte { return b.tools.local() }

// Listed replaces what we describe in a list of Codex.
func (b *bridge) Listed(result []byte) []byte {
	return b.tools.curate(result, mcp.Span{Start: 0, End: len(result)})
}

// Failed answers what is open because no Codex is there to serve it.
func (b *bridge) Failed(r *request, err error) {
	switch {
	case r.poll != nil: // of a job, which has its own end
	case r.state.wanted():
		b.AnswerLocally(r, err)
	case r.job != nil:
		b.Settle(r)
		r.job.Canceled("canceled")
	default:
		b.Settle(r)
	}
}

// Unavailable answers a call, or fails a job, that no Codex can serve.
func (b *bridge) Unavailable(r *request, err error) {
	text := "Codex is not available: " + remedy(err) + ". The next call tries again."
	if r.job != nil {
		b.Settle(r)
		r.job.Fail(text, "")
		return
	}
	b.Respond(r, proxy.ToolError("mcp-agents: "+text))
}
