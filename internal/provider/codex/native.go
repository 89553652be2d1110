package codex

import (
	"maps"
	"slices"
	"strings"

	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
)

// fromChild takes a piece of Codex's output, or its end.
func (b *bridge) fromChild(p proxy.Piece, ok bool) {
	s := b.session
	if !ok {
		s.StdoutClosed, s.midLine = true, false
		b.outputEnded()
		return
	}
	// What this line settles is not settled by its end.
	var waited []*request
	if len(b.awaiting) > 0 {
		waited = slices.Collect(maps.Keys(b.awaiting))
	}
	s.midLine = p.Begun || p.Behind || !p.Last && !p.Cut
	switch {
	case p.Begun:
		return
	case p.Whole():
		b.fromLine(p)
	case p.First:
		b.fromHead(p)
	default:
		b.fromRest(p)
	}
	if !p.Last || b.session != s {
		return
	}
	if !s.midLine { // also what waits since this line
		waited = slices.Collect(maps.Keys(b.awaiting))
	}
	b.lineEnded(waited)
}

// fromLine takes a whole line. One without its LF is the last that Codex wrote:
// a complete message is delivered as one, anything else stays half a line.
func (b *bridge) fromLine(p proxy.Piece) {
	if seen := mcp.Scan(p.Data); !p.Cut && b.session.Served && seen.IsNotification() && seen.Method != "codex/event" {
		b.native(p, b.framed) // nothing hangs on it, so it need not be checked byte by byte
		return
	}
	env, err := mcp.ParseEnvelope(p.Data)
	if err == nil && p.Cut {
		p = proxy.Piece{Data: append(p.Data, '\n'), First: true, Last: true}
	}
	if err != nil && !b.session.Served {
		b.session.keepTail(p.Data) // such as why Codex will not serve
	}
	switch {
	case env.IsResponse():
		b.fromResponse(p, env)
	case env.HasMethod && env.ID.Usable():
		b.fromServerRequest(p, env)
	case env.Method == "codex/event":
		b.fromEvent(p, env)
	default:
		b.native(p, b.framed)
	}
}

// fromResponse takes an answer of Codex.
func (b *bridge) fromResponse(p proxy.Piece, env mcp.Envelope) {
	key := env.ID.Key()
	if r := b.open[key]; r != nil {
		b.served(r)
		r.native = &reply{p, env}
		b.step(r, answered)
		return
	}
	if private(key) {
		b.heardLast(key)
		b.fromPrivate(key, env)
		return
	}
	r, late := b.late(key)
	switch {
	case !late:
		b.native(p, b.framed)
	case r != nil:
		b.served(r)
		if r.method == "tools/list" && env.Result != nil {
			b.compareTools(env.Result)
		}
		if r.turn != nil && loginRefused(env.Result) {
			b.invalidateLogin()
		}
	}
}

// fromHead takes the first piece of a line that is too long to hold.
func (b *bridge) fromHead(p proxy.Piece) {
	s := b.session
	env := mcp.ScanPrefix(p.Head())
	s.dropping = b.dropsLong(env)
	if s.dropping {
		return
	}
	framed := b.framed
	if r := b.open[correlation(env.Params)]; r != nil {
		b.alive(r)
	}
	if env.IsResponse() && env.ID.Usable() {
		if s.streaming = b.open[env.ID.Key()]; s.streaming != nil {
			b.alarms.Cancel(s.streaming.handshake) // it is being answered
			framed = s.streaming.framed
		}
	}
	b.native(p, framed)
}

// dropsLong reports whether a line that is too long to hold is not for the
// client, and settles what it answers.
func (b *bridge) dropsLong(env mcp.Envelope) bool {
	if !env.IsResponse() {
		return private(correlation(env.Params)) // an event of a job
	}
	key := env.ID.Key()
	r := b.open[key]
	switch {
	case r == nil && private(key):
		b.heardLast(key)
		return true
	case r == nil:
		_, late := b.late(key)
		return late
	case r.state.wanted() && r.job != nil:
		b.oversizeAnswer(r)
		return true
	case r.state.wanted() && r.unauthorized:
		b.settle(r)
		b.failUnauthorized(r)
		return true
	case !r.state.wanted():
		b.step(r, answered)
		return true
	}
	return false
}

// fromRest takes a later piece of such a line. The request that the line
// answers is open to its end, should Codex die in the middle.
func (b *bridge) fromRest(p proxy.Piece) {
	s := b.session
	if !s.dropping {
		b.native(p, false) // the first piece has decided
	}
	if p.Last {
		if r := s.streaming; r != nil {
			b.served(r)
			b.settle(r)
		}
		s.streaming, s.dropping = nil, false
	}
}

// native queues a piece of Codex's output for the client.
func (b *bridge) native(p proxy.Piece, framed bool) {
	err := b.out.Native(p, framed)
	if err == nil {
		return
	}
	b.log.Warn("dropped a line of codex", "error", err)
	if r := b.session.streaming; r != nil {
		b.session.streaming = nil
		b.respondError(r, mcp.CodeInternal, "mcp-agents: the answer of codex is a "+err.Error())
	}
}

// served notes that the child has answered its initialize, or anything at all
// if it has got none. From here its end is the bridge's end.
func (b *bridge) served(r *request) {
	s := b.session
	if r.method == "initialize" || !s.Initialized {
		s.Served = true
		b.alarms.Cancel(s.readiness)
	}
}

// fromStderr logs what Codex says of itself, which may hold what the model
// wrote.
func (b *bridge) fromStderr(chunk []byte, ok bool) {
	s := b.session
	if !ok {
		s.StderrClosed = true
		b.outputEnded()
		return
	}
	s.keepTail(chunk)
	b.log.Debug("[codex] " + strings.TrimRight(string(chunk), " \t\r\n"))
}
