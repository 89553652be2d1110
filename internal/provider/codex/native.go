package codex

import (
	"strings"

	"mcpagents/internal/relay"
	"mcpagents/internal/stdio"
)

// fromChild takes a piece of Codex's output, or its end.
func (b *bridge) fromChild(p relay.Piece, ok bool) {
	s := b.session
	switch {
	case !ok:
		s.stdoutEnded = true
		b.outputEnded()
	case p.Whole():
		b.fromLine(p)
	case p.First:
		b.fromHead(p)
	default:
		b.fromRest(p)
	}
}

// fromLine takes a whole line. One without its LF is the last that Codex wrote:
// a complete message is delivered as one, anything else stays half a line.
func (b *bridge) fromLine(p relay.Piece) {
	env, err := stdio.ParseEnvelope(p.Data)
	if err == nil && p.Cut {
		p = relay.Piece{Data: append(p.Data, '\n'), First: true, Last: true}
	}
	if err != nil && !b.session.served {
		b.session.keepTail(p.Data) // such as why Codex will not serve
	}
	if env.IsResponse() {
		p.Data = b.fromResponse(p.Data, env)
		if p.Data == nil {
			return
		}
	}
	b.native(p, b.framedFor(env))
	if r := b.answers(env); r != nil && !p.Cut {
		b.settle(r)
	}
}

// answers returns the open request that env answers, nil if it answers none.
func (b *bridge) answers(env stdio.Envelope) *request {
	if !env.IsResponse() || !env.ID.Usable() {
		return nil
	}
	return b.open[env.ID.Key()]
}

// framedFor returns the mode of a native message: that of the request that it
// answers, else that of the client's latest message.
func (b *bridge) framedFor(env stdio.Envelope) bool {
	if r := b.answers(env); r != nil {
		return r.framed
	}
	return b.framed
}

// fromHead takes the first piece of a line that is too long to hold.
func (b *bridge) fromHead(p relay.Piece) {
	s := b.session
	env := stdio.ScanPrefix(p.Head())
	key := env.ID.Key()
	s.dropping = env.IsResponse() && (b.swallowed[key] != nil || private(key))
	if s.dropping {
		delete(b.swallowed, key)
		return
	}
	if s.streaming = b.answers(env); s.streaming != nil {
		b.alarms.cancel(s.streaming.deadline) // it is being answered
	}
	b.native(p, b.framedFor(env))
}

// fromRest takes a later piece of such a line. The request that the line
// answers is open to its end, should Codex die in the middle.
func (b *bridge) fromRest(p relay.Piece) {
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
func (b *bridge) native(p relay.Piece, framed bool) {
	err := b.out.Native(p, framed)
	if err == nil {
		return
	}
	b.log.Warn("dropped a line of codex", "error", err)
	if r := b.session.streaming; r != nil {
		b.session.streaming = nil
		b.respondError(r, stdio.CodeInternal, "mcp-agents: the answer of codex is a "+err.Error())
	}
}

// fromResponse returns the line for the client, nil if it is not for the client.
func (b *bridge) fromResponse(line []byte, env stdio.Envelope) []byte {
	key := env.ID.Key()
	if private(key) {
		b.fromPrivate(key, env)
		return nil
	}
	r := b.open[key]
	late := b.swallowed[key]
	switch {
	case late != nil:
		delete(b.swallowed, key)
		r = late
	case r == nil:
		return line
	}
	b.served(r)
	list := r.method == "tools/list" && env.Result != nil
	switch {
	case late != nil && list:
		b.compareTools(env.Result)
		return nil
	case late != nil:
		return nil
	case list:
		result, _ := lookup(line, "result")
		return b.tools.curate(line, result)
	}
	return line
}

// served notes that the child has answered its initialize, or anything at all
// if it has got none. From here its end is the bridge's end.
func (b *bridge) served(r *request) {
	s := b.session
	if r.method == "initialize" || !s.initialized {
		s.served = true
		b.alarms.cancel(s.readiness)
	}
}

// fromStderr logs what Codex says of itself, which may hold what the model
// wrote.
func (b *bridge) fromStderr(chunk []byte, ok bool) {
	s := b.session
	if !ok {
		s.stderr, s.stderrEnded = nil, true
		b.outputEnded()
		return
	}
	s.keepTail(chunk)
	b.log.Debug("[codex] " + strings.TrimRight(string(chunk), " \t\r\n"))
}
