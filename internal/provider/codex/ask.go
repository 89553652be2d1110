package codex

import (
	"mcpagents/internal/agent"
	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
)

// question is a request of Codex that has no answer yet.
type question struct {
	about *request // nil once it was answered here
}

// maxQuestions bounds them: a Codex that asks more is not waited for.
const maxQuestions = 1024

// fromServerRequest takes a request of Codex, such as one for approval. The
// client answers it, except for a job, which has nobody who could.
func (b *bridge) fromServerRequest(p proxy.Piece, env mcp.Envelope) {
	named := b.Open[correlation(env.Params)]
	b.answersQuestion(env.ID.Key()) // an older one with the id is not answered any more
	r := named
	if r == nil {
		r = b.inThread(env.Params)
	}
	if r != nil && r.job != nil {
		b.refuseQuestion(r, env.ID)
		if named != nil {
			return
		}
		b.questions[env.ID.Key()] = question{} // the client's answer would be a second one
	} else if r != nil && len(b.questions) < maxQuestions {
		b.questions[env.ID.Key()] = question{r}
		r.asking++
	}
	b.pass(p, b.Framed)
}

// inThread returns the running turn of the thread that params name.
func (b *bridge) inThread(params []byte) *request {
	for _, path := range [][]string{{"_meta", "threadId"}, {"threadId"}, {"thread_id"}} {
		at, _ := mcp.Lookup(params, path...)
		thread, _ := mcp.Text(at.Of(params))
		if thread == "" {
			continue
		}
		for _, r := range b.Open {
			if r.turn != nil && r.turn.Thread == thread && r.end == agent.Alive {
				return r
			}
		}
	}
	return nil
}

// refuseQuestion answers Codex, and fails the job that cannot go on.
func (b *bridge) refuseQuestion(r *request, id mcp.ID) {
	body := proxy.Response(id, &mcp.Response{Error: &mcp.Error{Code: mcp.CodeMethodNotFound,
		Message: "interactive requests are not available for background jobs"}})
	b.Child.Input.Write(append(body, '\n'))
	b.sendCancel(r, "background job cannot answer")
	b.Settle(r)
	r.job.Fail("the turn asked for unsupported interactive input; run it as a blocking call", "")
}

// answersQuestion takes the client's answer to a request of Codex and reports
// whether Codex shall get it.
func (b *bridge) answersQuestion(key string) bool {
	q, ok := b.questions[key]
	if !ok {
		return true
	}
	delete(b.questions, key)
	if q.about == nil {
		return false
	}
	if q.about.asking--; q.about.asking == 0 {
		b.renew(q.about)
	}
	return true
}
