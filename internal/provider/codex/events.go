package codex

import (
	"encoding/json"
	"time"

	"mcpagents/internal/agent"
	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
	"mcpagents/internal/provider/codex/mcpserver"
)

// fromEvent takes a codex/event. It belongs to the request that it names; those
// of jobs, and those that say that the login is refused, are not for the client.
func (b *bridge) fromEvent(p proxy.Piece, env mcp.Envelope) {
	key := correlation(env.Params)
	r := b.Open[key]
	abandoned := b.ledger.Find(key)
	var e *mcpserver.Event
	if r != nil || abandoned != nil || b.Owed[key] != nil {
		msg, _ := mcp.Lookup(env.Params, "msg")
		kind, _ := mcp.Lookup(env.Params, "msg", "type")
		name, _ := mcp.Text(kind.Of(env.Params))
		e = mcpserver.Parse(name, msg.Of(env.Params))
	}
	refused := e != nil && e.Unauthorized()
	if !b.Reserved(key) && !refused {
		b.pass(p, b.Framed)
	}
	if refused {
		b.invalidateLogin()
	}
	switch {
	case r != nil:
		b.fromTurn(r, e, env.Params)
	case abandoned != nil:
		b.fromAbandoned(key, abandoned, e)
	}
}

// correlation is the key of the request that params belong to, empty if they
// name none.
func correlation(params []byte) string {
	at, _ := mcp.Lookup(params, "_meta", "requestId")
	return mcp.ParseID(at.Of(params)).Key()
}

// fromTurn takes an event of a request.
func (b *bridge) fromTurn(r *request, native *mcpserver.Event, params json.RawMessage) {
	b.alive(r)
	if r.turn == nil {
		return
	}
	b.learnThread(r, params)
	e := native.In(&r.said)
	r.turn.Note(e)
	switch {
	case r.job != nil:
		r.job.Say(e.Commentary)
		if e.Status != "" && r.state == open {
			r.job.Progress(e.Status)
		} else {
			r.job.Active()
		}
	case r.state == open:
		r.progress.Tell(e.Status)
	}
	if r.end != agent.Alive || !e.Ends() {
		return
	}
	r.endKind, r.lastMessage = e.Name, e.Answer
	if e.Kind == agent.Unauthorized {
		r.unauthorized = true // Codex may still report the turn's own end
	} else {
		r.end = e.Kind
	}
	b.step(r, ended)
}

// learnThread notes the thread of a turn, and where a new thread works.
func (b *bridge) learnThread(r *request, params json.RawMessage) {
	at, _ := mcp.Lookup(params, "_meta", "threadId")
	thread, _ := mcp.Text(at.Of(params))
	if thread == "" || r.turn.Thread == thread {
		return
	}
	r.turn.Thread = thread
	if r.job != nil {
		r.job.Thread = thread
	}
	if r.turn.Tool == toolCodex {
		b.threads.Remember(thread, r.turn.Cwd, r.turn.Sandbox)
	}
}

// fromAbandoned takes an event of a turn that was given up. It is heard of for
// the last time when it and its commands have ended.
func (b *bridge) fromAbandoned(key string, t *agent.Record, native *mcpserver.Event) {
	e := native.In(&mcpserver.Speech{})
	t.Note(e)
	if e.Kind == agent.Completed || e.Kind == agent.Aborted {
		t.Over = true
		b.rememberEnd(key)
	}
	if t.Over && len(t.Commands) == 0 {
		b.heardLast(key)
	}
}

// tellProgress begins to tell the client about r if it gave a token for it.
func (b *bridge) tellProgress(r *request, token json.RawMessage) {
	if !validToken(token) {
		return
	}
	t := b.cfg.Times
	r.progress = &progress{Spacing: t.ProgressInterval, Silence: t.WaitInterval, After: b.after, Age: func() time.Duration {
		return time.Since(r.turn.Active)
	}, Send: func(m progressMessage) { b.sendProgress(r, m) }}
	r.progress.Start(token)
}

// sendProgress queues a message for the client in place of one that has not
// left. One that came inside a half-written line waits for its end, since that
// may be the answer.
func (b *bridge) sendProgress(r *request, m progressMessage) {
	b.Out.Drop(progressTag{r.Key})
	if b.HalfLine() {
		r.held = &m
		b.holding[r] = struct{}{}
		b.WatchStall()
		return
	}
	r.held = nil
	delete(b.holding, r)
	b.Own(proxy.Notification("notifications/progress", m), r.Framed, progressTag{r.Key})
}
