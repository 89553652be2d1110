package browser

import (
	"bytes"
	"fmt"

	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
)

// Piece takes a piece of the downstream's output.
func (b *bridge) Piece(p proxy.Piece) {
	run := b.Child
	switch {
	case p.Whole():
		b.Line(p)
	case p.First:
		b.beginLong(p)
	default:
		b.continueLong(p)
	}
	if p.Last && b.Child == run {
		b.armIdle() // a whole frame came
	}
}

// Drained starts the browser's idle time anew.
func (b *bridge) Drained() { b.armIdle() }

// Line takes a whole line. One without its LF is the last that the
// downstream wrote: a complete message is delivered as one, but the result of a
// browser call that ends so is not to be trusted.
func (b *bridge) Line(p proxy.Piece) {
	env, err := mcp.ParseEnvelope(p.Data)
	switch {
	case err != nil:
		b.fromBroken(p)
		return
	case p.Cut:
		p = proxy.Piece{Data: append(p.Data, '\n'), First: true, Last: true}
		if r := b.Open[env.ID.Key()]; r != nil && r.browser && env.IsResponse() {
			return // its end answers it
		}
	}
	switch {
	case env.IsResponse():
		b.fromResponse(p, env)
	case env.HasMethod && env.ID.Usable():
		b.fromQuestion(p, env)
	default:
		if env.Method == "notifications/tools/list_changed" {
			b.tools = nil // until there is a new list every name may be a tool
		}
		b.Native(p, b.Framed)
	}
}

// fromBroken takes a line that is no JSON. It passes, unless it may be the
// result of a browser call.
func (b *bridge) fromBroken(p proxy.Piece) {
	seen := mcp.ScanPrefix(p.Data)
	if seen.HasMethod || !b.awaitsBrowser() {
		b.Native(p, b.Framed)
		return
	}
	r := b.Open[seen.ID.Key()]
	switch {
	case r != nil && r.browser && r.Forwarded:
		b.distrust([]*request{r}, "its result is malformed")
	case r == nil && mentionsResult(p.Data):
		b.distrust(b.awaiting(), "a result that cannot be read came, perhaps its own")
	default:
		b.Native(p, b.Framed)
	}
}

// fromResponse takes an answer of the downstream.
func (b *bridge) fromResponse(p proxy.Piece, env mcp.Envelope) {
	key := env.ID.Key()
	r := b.Open[key]
	switch {
	case b.Reserved(key):
		b.FromPrivate(key, env)
	case r == nil:
		late := b.Owed[key]
		if late == nil {
			b.Native(p, b.Framed)
			return
		}
		delete(b.Owed, key)
		b.Child.Served = true
		if late.Method == "tools/list" {
			b.CompareTools(env.Result)
		}
	case !r.Forwarded, r.native != nil:
		b.Log.Warn("dropped an answer of chrome-devtools-mcp that nobody asked it for")
	case r.browser:
		b.Child.Served = b.Child.Served || !b.Child.Initialized
		r.native = &reply{p, env}
		b.verify(r)
	default:
		b.Served(r)
		if r.Method == "tools/list" && env.Result != nil {
			b.sawTools(env.Result, r.page)
			b.list = b.annotated(env.Result)
			p.Data = proxy.WithResult(p.Data, b.list)
		}
		b.Settle(r)
		b.Native(p, r.Framed)
	}
}

// awaiting returns the browser calls that the downstream has got and not
// answered, in order.
func (b *bridge) awaiting() []*request {
	var all []*request
	for _, r := range b.InOrder() {
		if r.browser && r.Forwarded && r.native == nil {
			all = append(all, r)
		}
	}
	return all
}

func (b *bridge) awaitsBrowser() bool { return len(b.awaiting()) > 0 }

// mentionsResult reports whether a broken line may be an answer.
func mentionsResult(line []byte) bool {
	return bytes.Contains(line, []byte(`"result"`)) || bytes.Contains(line, []byte(`"error"`))
}

// logLong says that a line was too long to be looked at.
func (b *bridge) logLong(what string) {
	b.Log.Warn(fmt.Sprintf("frame exceeded rewrite cap (%d bytes): %s", proxy.MaxLine, what))
}
