package proxy

import (
	"fmt"
	"strings"
	"time"

	"mcpagents/internal/mcp"
)

// ClientGoneGrace is how long a child may take to end after the client's last
// message, unless a provider says otherwise.
const ClientGoneGrace = 60 * time.Second

// Defaults are the usual decisions of a provider: it passes every message on, in
// both directions and byte for byte. A Policy embeds it, adds Request and
// Launch, and replaces what it does in another way.
type Defaults[R Entry] struct {
	*Session[R]
	streaming R // the request that a line too long to hold answers
}

// Other forwards the message.
func (d *Defaults[R]) Other(m mcp.Message, _ mcp.Envelope) { d.Forward(Pending[R]{Message: m}) }

// Cancel settles r and tells the child, if it has got r.
func (d *Defaults[R]) Cancel(r R, m mcp.Message) {
	waited := d.Withdraw(r)
	d.Settle(r)
	if !waited {
		d.Forward(Pending[R]{Message: m})
	}
	d.Pump()
}

// MayPass lets every message pass.
func (d *Defaults[R]) MayPass(Pending[R]) bool { return true }

// Sent does nothing.
func (d *Defaults[R]) Sent(R) {}

// Settled does nothing.
func (d *Defaults[R]) Settled(R) {}

// ClientGone ends the child's input and gives it ClientGoneGrace.
func (d *Defaults[R]) ClientGone() { d.WindDown(ClientGoneGrace) }

// Drained does nothing.
func (d *Defaults[R]) Drained() {}

// Piece streams a line that is too long to hold. The request that it answers is
// open to the line's end, should the child die in the middle.
func (d *Defaults[R]) Piece(p Piece) {
	var none R
	framed := d.Framed
	switch {
	case p.Whole():
		d.policy.Line(p)
		return
	case p.First:
		if env := mcp.ScanPrefix(p.Head()); env.IsResponse() {
			d.streaming = d.Open[env.ID.Key()]
		}
		if d.streaming != none {
			d.BeingAnswered(d.streaming)
			framed = d.streaming.request().Framed
		}
	}
	d.Native(p, framed)
	if r := d.streaming; p.Last && r != none {
		d.streaming = none
		d.Served(r)
		d.Settle(r)
	}
	if p.Last {
		d.LineEnded()
	}
}

// Line passes a line on, unless it answers a request that has its answer, or one
// of ours. A tools/list result passes through Listed.
func (d *Defaults[R]) Line(p Piece) {
	env, err := mcp.ParseEnvelope(p.Data)
	if err == nil && p.Cut {
		p = Piece{Data: append(p.Data, '\n'), First: true, Last: true}
	}
	framed := d.Framed
	if key := env.ID.Key(); env.IsResponse() {
		r, open := d.Open[key]
		owed, late := d.Owed[key]
		switch {
		case d.Reserved(key):
			d.FromPrivate(key, env)
			return
		case late:
			delete(d.Owed, key)
			d.Served(owed)
			if owed.request().Method == "tools/list" {
				d.CompareTools(env.Result)
			}
			return
		case open:
			d.Served(r)
			d.Settle(r)
			framed = r.request().Framed
			if r.request().Method == "tools/list" && env.Result != nil {
				p.Data = WithResult(p.Data, d.policy.Listed(env.Result))
			}
		}
	}
	d.Native(p, framed)
}

// HalfLine reports whether the child has begun a line and not ended it.
func (d *Defaults[R]) HalfLine() bool { return d.Child != nil && d.Child.MidLine }

// Stderr logs it at debug level, since it may hold what users wrote.
func (d *Defaults[R]) Stderr(chunk []byte) {
	d.Log.Debug("[" + d.cfg.Name + "] " + strings.TrimRight(string(chunk), " \t\r\n"))
}

// Tools is an empty list. The client is told when the child's differs.
func (d *Defaults[R]) Tools() []byte { return []byte(`{"tools":[]}`) }

// Listed leaves the list as it is.
func (d *Defaults[R]) Listed(result []byte) []byte { return result }

// NotServed names the exit status.
func (d *Defaults[R]) NotServed() error {
	return fmt.Errorf("it ended before it answered initialize (%s)", d.Ending())
}

// Failed answers r here.
func (d *Defaults[R]) Failed(r R, err error) { d.AnswerLocally(r, err) }

// Unavailable answers with a tool's error.
func (d *Defaults[R]) Unavailable(r R, err error) {
	d.Respond(r, ToolError(fmt.Sprintf("mcp-agents: %s is not available: %v. The next call tries again.", d.cfg.Called, err)))
}

// Abort answers every open request with an error.
func (d *Defaults[R]) Abort(reason string) {
	for _, r := range d.InOrder() {
		d.RespondError(r, mcp.CodeAborted, "mcp-agents: "+d.cfg.Called+" did not answer ("+reason+")")
	}
}
