package browser

import (
	"regexp"

	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
)

// longLine is a line of the downstream that is too long to hold.
type longLine struct {
	// passing says that it goes to the client as it comes. Else nothing of it does.
	passing bool
	owner   *request // that it answers, nil if it is not known
	tail    []byte   // its last bytes, when the owner is not known
}

// tailSize is how much of the end of a line is kept to look for its id.
const tailSize = 4 << 10

// beginLong takes the first piece of a line that is too long to hold. It streams
// to the client, unless it is, or may be, the result of a browser call: such a
// line cannot be held back until it is verified.
func (b *bridge) beginLong(p proxy.Piece) {
	env := mcp.ScanPrefix(p.Head())
	r := b.Open[env.ID.Key()]
	_, late := b.Owed[env.ID.Key()]
	l := &longLine{passing: true}
	b.long = l
	switch {
	case env.HasMethod:
	case late:
		delete(b.Owed, env.ID.Key())
		l.passing = false
	case r != nil:
		l.owner = r
		l.passing = !r.browser
		b.BeingAnswered(r)
	case !env.ID.Usable() && b.awaitsBrowser():
		l.passing = false // the id may follow the result
	}
	b.logLong(map[bool]string{true: "passed on as it is", false: "held back"}[l.passing])
	framed := b.Framed
	if r != nil {
		framed = r.Framed
	}
	b.takeLong(p, framed)
}

// continueLong takes a later piece of such a line.
func (b *bridge) continueLong(p proxy.Piece) {
	b.takeLong(p, false) // the first piece has decided how it is framed
	if p.Last {
		l := b.long
		b.long = nil
		b.LineEnded()
		b.endLong(l)
	}
}

func (b *bridge) takeLong(p proxy.Piece, framed bool) {
	l := b.long
	if l.passing {
		b.Native(p, framed)
		return
	}
	l.tail = append(l.tail, p.Data...)
	if n := len(l.tail) - tailSize; n > 0 {
		l.tail = append(l.tail[:0], l.tail[n:]...)
	}
}

// endLong settles what the line answered.
func (b *bridge) endLong(l *longLine) {
	switch {
	case l.passing && l.owner != nil:
		b.Served(l.owner)
		b.Settle(l.owner)
	case l.passing:
	case l.owner != nil:
		b.distrust([]*request{l.owner}, "its result is longer than 10 MiB")
	default:
		b.endUnnamed(idAtEnd(l.tail))
	}
}

// endUnnamed settles a line without an id in its head.
func (b *bridge) endUnnamed(id mcp.ID) {
	r := b.Open[id.Key()]
	switch {
	case r == nil:
		b.distrust(b.awaiting(), "a result longer than 10 MiB came, perhaps its own")
	case r.browser && r.Forwarded:
		b.distrust([]*request{r}, "its result is longer than 10 MiB")
	default:
		b.RespondError(r, mcp.CodeInternal, prefix+"the answer is longer than 10 MiB and names its id at its end")
	}
}

// endingID is an id member as the last one of a message.
var endingID = regexp.MustCompile(`"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9.eE+-]+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?}\s*$`)

// idAtEnd is the id that a message ends with, absent if it is not there.
func idAtEnd(tail []byte) mcp.ID {
	m := endingID.FindSubmatch(tail)
	if m == nil {
		return mcp.ID{}
	}
	return mcp.ParseID(m[1])
}

// HalfLine reports whether the client has a part of a line that the downstream
// has not ended.
func (b *bridge) HalfLine() bool { return b.Child != nil && b.long != nil && b.long.passing }
