package codex

import (
	"maps"
	"slices"
	"strings"

	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
)

// Piece takes a piece of Codex's stdout.
func (b *bridge) Piece(p proxy.Piece) {
	run := b.Child
	// What this line settles is not settled by its end.
	var waited []*request
	if len(b.awaiting) > 0 {
		waited = slices.Collect(maps.Keys(b.awaiting))
	}
	switch {
	case p.Whole():
		b.Line(p)
	case p.First:
		b.fromHead(p)
	default:
		b.fromRest(p)
	}
	if !p.Last || b.Child != run {
		return
	}
	if !run.MidLine { // also what waits since this line
		waited = slices.Collect(maps.Keys(b.awaiting))
	}
	b.lineEnded(waited)
}

// Line takes a whole line. One without its LF is the last that Codex wrote:
// a complete message is delivered as one, anything else stays half a line.
func (b *bridge) Line(p proxy.Piece) {
	if seen := mcp.Scan(p.Data); !p.Cut && b.Child.Served && seen.IsNotification() && seen.Method != "codex/event" {
		b.pass(p, b.Framed) // nothing hangs on it, so it need not be checked byte by byte
		return
	}
	env, err := mcp.ParseEnvelope(p.Data)
	if err == nil && p.Cut {
		p = proxy.Piece{Data: append(p.Data, '\n'), First: true, Last: true}
	}
	if err != nil && !b.Child.Served {
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
		b.pass(p, b.Framed)
	}
}

// fromResponse takes an answer of Codex.
func (b *bridge) fromResponse(p proxy.Piece, env mcp.Envelope) {
	key := env.ID.Key()
	if r := b.Open[key]; r != nil {
		b.Served(r)
		r.native = &reply{p, env}
		b.step(r, answered)
		return
	}
	if b.Reserved(key) {
		b.heardLast(key)
		b.FromPrivate(key, env)
		return
	}
	r, late := b.late(key)
	switch {
	case !late:
		b.pass(p, b.Framed)
	case r != nil:
		b.Served(r)
		if r.Method == "tools/list" {
			b.CompareTools(env.Result)
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
	framed := b.Framed
	if r := b.Open[correlation(env.Params)]; r != nil {
		b.alive(r)
	}
	if env.IsResponse() && env.ID.Usable() {
		if s.streaming = b.Open[env.ID.Key()]; s.streaming != nil {
			b.BeingAnswered(s.streaming)
			framed = s.streaming.Framed
		}
	}
	b.pass(p, framed)
}

// dropsLong reports whether a line that is too long to hold is not for the
// client, and settles what it answers.
func (b *bridge) dropsLong(env mcp.Envelope) bool {
	if !env.IsResponse() {
		return b.Reserved(correlation(env.Params)) // an event of a job
	}
	key := env.ID.Key()
	r := b.Open[key]
	switch {
	case r == nil && b.Reserved(key):
		b.heardLast(key)
		return true
	case r == nil:
		_, late := b.late(key)
		return late
	case r.state.wanted() && r.job != nil:
		b.oversizeAnswer(r)
		return true
	case r.state.wanted() && r.unauthorized:
		b.Settle(r)
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
		b.pass(p, false) // the first piece has decided
	}
	if p.Last {
		if r := s.streaming; r != nil {
			b.Served(r)
			b.Settle(r)
		}
		s.streaming, s.dropping = nil, false
	}
}

// pass queues a piece of Codex's stdout for the client.
func (b *bridge) pass(p proxy.Piece, framed bool) {
	if b.Native(p, framed) {
		return
	}
	if r := b.session.streaming; r != nil {
		b.session.streaming = nil
		b.RespondError(r, mcp.CodeInternal, "mcp-agents: the answer of codex is a "+proxy.ErrLineTooLong.Error())
	}
}

// Stderr logs what Codex says of itself, which may hold what the model wrote.
func (b *bridge) Stderr(chunk []byte) {
	b.session.keepTail(chunk)
	b.Log.Debug("[codex] " + strings.TrimRight(string(chunk), " \t\r\n"))
}
