package browser

import (
	"bytes"
	"fmt"

	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
)

// fromChild takes a piece of the downstream's output, or its end.
func (b *bridge) fromChild(p proxy.Piece, ok bool) {
	s := b.session
	if !ok {
		s.StdoutClosed = true
		b.outputEnded()
		return
	}
	switch {
	case p.Begun:
		return
	case p.Whole():
		b.fromLine(p)
	case p.First:
		b.beginLong(p)
	default:
		b.continueLong(p)
	}
	if p.Last && b.session == s {
		b.armIdle() // a whole frame came
	}
}

// fromLine takes a whole line. One without its LF is the last that the
// downstream wrote: a complete message is delivered as one, but the result of a
// browser call that ends so is not to be trusted.
func (b *bridge) fromLine(p proxy.Piece) {
	env, err := mcp.ParseEnvelope(p.Data)
	switch {
	case err != nil:
		b.fromBroken(p)
		return
	case p.Cut:
		p = proxy.Piece{Data: append(p.Data, '\n'), First: true, Last: true}
		if r := b.open[env.ID.Key()]; r != nil && r.browser && env.IsResponse() {
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
		b.native(p, b.framed)
	}
}

// fromBroken takes a line that is no JSON. It passes, unless it may be the
// result of a browser call.
func (b *bridge) fromBroken(p proxy.Piece) {
	seen := mcp.ScanPrefix(p.Data)
	if seen.HasMethod || !b.awaitsBrowser() {
		b.native(p, b.framed)
		return
	}
	r := b.open[seen.ID.Key()]
	switch {
	case r != nil && r.browser && r.forwarded:
		b.distrust([]*request{r}, "its result is malformed")
	case r == nil && mentionsResult(p.Data):
		b.distrust(b.awaiting(), "a result that cannot be read came, perhaps its own")
	default:
		b.native(p, b.framed)
	}
}

// fromResponse takes an answer of the downstream.
func (b *bridge) fromResponse(p proxy.Piece, env mcp.Envelope) {
	key := env.ID.Key()
	r := b.open[key]
	switch {
	case reserved(key):
		b.fromPrivate(key, env)
	case r == nil:
		if _, late := b.suppressed[key]; !late {
			b.native(p, b.framed)
			return
		}
		delete(b.suppressed, key)
		b.session.Served = true
		if env.Result != nil && b.listed != nil && b.toolsOf(env.Result) != nil {
			b.sawTools(env.Result, false)
			b.compareTools(b.annotated(env.Result))
		}
	case !r.forwarded, r.native != nil:
		b.log.Warn("dropped an answer of chrome-devtools-mcp that nobody asked it for")
	case r.browser:
		b.session.Served = b.session.Served || !b.session.Initialized
		r.native = &reply{p, env}
		b.verify(r)
	default:
		b.served(r)
		if env.Result != nil {
			b.keepInitialize(r)
		}
		if r.method == "tools/list" && env.Result != nil {
			p.Data = b.curate(p.Data, r.page)
		}
		b.settle(r)
		b.native(p, r.framed)
	}
}

// served notes that the child has answered its initialize, or anything at all
// if it has got none. From here its end is the bridge's end.
func (b *bridge) served(r *request) {
	if r.method == "initialize" || !b.session.Initialized {
		b.session.Served = true
	}
}

// native queues a piece of the downstream's output for the client.
func (b *bridge) native(p proxy.Piece, framed bool) {
	if err := b.out.Native(p, framed); err != nil {
		b.log.Warn("dropped a line of chrome-devtools-mcp", "error", err)
	}
}

// awaiting returns the browser calls that the downstream has got and not
// answered, in order.
func (b *bridge) awaiting() []*request {
	var all []*request
	for _, r := range b.inOrder() {
		if r.browser && r.forwarded && r.native == nil {
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

// curate returns a tools/list answer with our notes, and remembers the names in
// it: of a page, beside those of the pages before it.
func (b *bridge) curate(line []byte, page bool) []byte {
	at, _ := mcp.Lookup(line, "result")
	result := at.Of(line)
	b.sawTools(result, page)
	b.list = b.annotated(result)
	return mcp.Splice(line, mcp.Edit{At: at, With: b.list})
}

// logLong says that a line was too long to be looked at.
func (b *bridge) logLong(what string) {
	b.log.Warn(fmt.Sprintf("frame exceeded rewrite cap (%d bytes): %s", proxy.MaxLine, what))
}
