package browser

import (
	"fmt"
	"maps"
	"strings"

	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
)

// asked is a request of the downstream, such as roots/list, that the client has
// not answered.
type asked struct {
	session int    // whose child asked
	id      []byte // as the child wrote it, if the client knows it by another one
}

// maxAsked bounds how many of them, and how many ids, are remembered: beyond it
// those of earlier children are forgotten, and then all.
const maxAsked = 4096

// forgetQuestions makes room in what is remembered of questions.
func (b *bridge) forgetQuestions() {
	now := b.Child.Number
	maps.DeleteFunc(b.questions, func(_ string, q asked) bool { return q.session != now })
	maps.DeleteFunc(b.askedIDs, func(_ string, session int) bool { return session != now })
	if len(b.askedIDs) >= maxAsked {
		clear(b.questions)
		clear(b.askedIDs)
	}
}

// fromQuestion passes on a request of the downstream: as it is, unless an
// earlier child has used the id. The client would then take the answer to the
// one for the answer to the other.
func (b *bridge) fromQuestion(p proxy.Piece, env mcp.Envelope) {
	run := b.Child
	if len(b.askedIDs) >= maxAsked {
		b.forgetQuestions()
	}
	key := env.ID.Key()
	last, used := b.askedIDs[key]
	switch {
	case used && last != run.Number, strings.HasPrefix(key, "string:"+questionIDs):
		b.aliases++
		alias := fmt.Sprintf("%s%s/%d/%d", questionIDs, b.cfg.Session, run.Number, b.aliases)
		b.askedIDs["string:"+alias] = run.Number
		b.questions["string:"+alias] = asked{run.Number, env.ID.Raw}
		at, _ := mcp.Lookup(p.Data, "id")
		p.Data = mcp.Splice(p.Data, mcp.Edit{At: at, With: mcp.Encode(alias)})
	default:
		b.askedIDs[key] = run.Number
		b.questions[key] = asked{session: run.Number}
	}
	b.Native(p, b.Framed)
}

// answerFor returns the client's answer with the id key as the child of now is
// to get it, nil if it is for an earlier one.
func (b *bridge) answerFor(key string, line []byte) []byte {
	q, known := b.questions[key]
	delete(b.questions, key)
	switch {
	case known && q.session != b.Child.Number:
		return nil
	case known && q.id != nil:
		at, _ := mcp.Lookup(line, "id")
		return mcp.Splice(line, mcp.Edit{At: at, With: q.id})
	case !known && b.askedIDs[key] != 0 && b.askedIDs[key] != b.Child.Number:
		return nil
	}
	return line
}
