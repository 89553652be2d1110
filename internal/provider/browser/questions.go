package browser

import (
	"fmt"
	"strings"

	"mcpagents/internal/rawjson"
	"mcpagents/internal/relay"
	"mcpagents/internal/stdio"
)

// asked is a request of the downstream, such as roots/list, that the client has
// not answered.
type asked struct {
	session int    // whose child asked
	id      []byte // as the child wrote it, if the client knows it by another one
}

// maxAsked bounds how many of them, and how many ids, are remembered. A
// downstream that asks more has its questions passed on and not told apart.
const maxAsked = 4096

// fromQuestion passes on a request of the downstream: as it is, unless an
// earlier child has used the id. The client would then take the answer to the
// one for the answer to the other.
func (b *bridge) fromQuestion(p relay.Piece, env stdio.Envelope) {
	s := b.session
	key := env.ID.Key()
	last, used := b.askedIDs[key]
	switch {
	case len(b.questions) >= maxAsked || len(b.askedIDs) >= maxAsked:
	case used && last != s.number, strings.HasPrefix(key, "string:"+questionIDs):
		alias := fmt.Sprintf("%s%s/%d/%d", questionIDs, b.cfg.Session, s.number, len(b.askedIDs))
		b.askedIDs["string:"+alias] = s.number
		b.questions["string:"+alias] = asked{s.number, env.ID.Raw}
		at, _ := rawjson.Lookup(p.Data, "id")
		p.Data = rawjson.Splice(p.Data, rawjson.Edit{At: at, With: rawjson.Encode(alias)})
	default:
		b.askedIDs[key] = s.number
		b.questions[key] = asked{session: s.number}
	}
	b.native(p, b.framed)
}

// answerFor returns the client's answer with the id key as the child of now is
// to get it, nil if it is for an earlier one.
func (b *bridge) answerFor(key string, line []byte) []byte {
	q, known := b.questions[key]
	delete(b.questions, key)
	switch {
	case known && q.session != b.session.number:
		return nil
	case known && q.id != nil:
		at, _ := rawjson.Lookup(line, "id")
		return rawjson.Splice(line, rawjson.Edit{At: at, With: q.id})
	case !known && b.askedIDs[key] != 0 && b.askedIDs[key] != b.session.number:
		return nil
	}
	return line
}
