package codex

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"mcpagents/internal/agent"
	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
)

// maxUnread bounds in bytes what waits for a Codex that does not read. More is
// refused message by message: reading of the client goes on, so that its
// cancels and its end are seen.
const maxUnread = 64 << 20

// privateIDs is how ids of our own requests to Codex begin. A request of the
// client with such an id is refused.
const privateIDs = "mcp-agents/"

// private reports whether an id key is of our own requests to Codex.
func private(key string) bool { return strings.HasPrefix(key, "string:"+privateIDs) }

// call is a tools/call of a tool that we describe.
type call struct {
	tool      *tool
	arguments mcp.Span // in the message
}

func (b *bridge) fromClient(ctx context.Context, e proxy.ClientEvent) {
	b.heard()
	if fault, ok := errors.AsType[*mcp.MessageError](e.Err); ok {
		b.framed = fault.Mode == mcp.Framed
		b.refuse(fault)
		return
	}
	if e.Err != nil {
		if !errors.Is(e.Err, io.EOF) {
			b.log.Warn("reading from the client failed", "error", e.Err)
		}
		b.clientGone()
		return
	}
	m := e.Message
	b.framed = m.Mode == mcp.Framed
	env, err := mcp.ParseEnvelope(m.Raw)
	switch {
	case errors.Is(err, mcp.ErrTooDeep):
		// Codex would refuse it, and nobody has checked its arguments.
		b.refuse(&mcp.MessageError{Mode: m.Mode, Seen: env, Err: err})
	case env.HasMethod && env.ID.Usable():
		b.fromRequest(ctx, m, env)
	case env.HasMethod:
		b.fromNotification(ctx, m, env)
	case env.IsResponse() && !b.answersQuestion(env.ID.Key()): // it has its answer from here
	default: // an answer, a batch, a blank line, or no JSON: Codex's business
		b.forward(ctx, pending{message: m})
	}
}

// refuse answers a message that is not forwarded.
func (b *bridge) refuse(fault *mcp.MessageError) {
	b.log.Warn("refused a message of the client", "error", fault)
	id := fault.Seen.ID
	switch {
	case fault.Seen.IsResponse(), !id.Usable(): // an answer would mean nothing to the client
		return
	case b.inFlight(id.Key()):
		b.reused(id)
		return
	}
	r := &request{id: id, key: id.Key(), framed: fault.Mode == mcp.Framed}
	b.respondError(r, mcp.CodeInvalidRequest, "mcp-agents: "+fault.Error())
}

func (b *bridge) fromRequest(ctx context.Context, m mcp.Message, env mcp.Envelope) {
	r := &request{id: env.ID, key: env.ID.Key(), method: env.Method, framed: b.framed, sequence: b.sequence}
	b.sequence++
	if private(r.key) {
		b.respondError(r, mcp.CodeInvalidRequest, "mcp-agents: ids that begin with "+privateIDs+" are reserved")
		return
	}
	if b.inFlight(r.key) {
		b.reused(r.id)
		return
	}
	b.forgetEnd(r.key)
	b.open[r.key] = r
	c := b.callOf(m.Raw, env)
	if c != nil {
		if v := c.tool.validate(m.Raw, c.arguments, b.cfg.CheckCwd); v != nil {
			b.log.Warn("rejected invalid " + c.tool.name + " call; fields: " + v.fields())
			b.answer(r, &mcp.Response{Error: &mcp.Error{Code: mcp.CodeInvalidParams,
				Message: "mcp-agents: invalid arguments for " + c.tool.name, Data: v}})
			return
		}
		if b.callLocally(r, c, m) {
			return
		}
		r.turn = b.newTurn(r, c.tool.name, m.Raw, c.arguments)
		b.tellProgress(r, m.Raw)
	}
	if proxy.Handshake(r.method) {
		r.handshake = b.alarms.After(b.cfg.HandshakeTimeout, func() { b.handshakeOverdue(r) })
	}
	b.forward(ctx, pending{message: m, request: r, call: c})
}

// inFlight reports whether an answer with the key is still to come.
func (b *bridge) inFlight(key string) bool { return b.open[key] != nil || b.suppressed[key] != nil }

// reused ends the bridge because an id was used again while it was in flight:
// nobody could tell the two answers apart.
func (b *bridge) reused(id mcp.ID) {
	r := b.open[id.Key()]
	if r == nil {
		r = b.suppressed[id.Key()]
		b.open[r.key] = r // so that the second use has its error
	}
	if r.poll != nil {
		r.poll()
		r.poll = nil
	}
	r.state = open
	r.end = agent.Alive
	b.finish(proxy.Outcome{Code: 1, Reason: fmt.Sprintf("request id %.64s was reused while it was in flight", id.Raw), Emit: true})
}

func (b *bridge) fromNotification(ctx context.Context, m mcp.Message, env mcp.Envelope) {
	switch env.Method {
	case "notifications/cancelled":
		b.fromCancel(ctx, m)
		return
	case "notifications/initialized":
		b.initialized = proxy.WholeLine(m)
		if b.initialize != nil && b.phase != running {
			return // follows the initialize that the next child gets
		}
	}
	c := b.callOf(m.Raw, env)
	if c != nil {
		if v := c.tool.validate(m.Raw, c.arguments, b.cfg.CheckCwd); v != nil {
			b.log.Warn("dropped invalid " + c.tool.name + " notification; fields: " + v.fields())
			return
		}
		if c.tool.name != c.tool.native || b.loginInvalid {
			return // nobody would get the answer
		}
	}
	b.forward(ctx, pending{message: m, call: c, initialized: env.Method == "notifications/initialized"})
}

// fromCancel passes a cancel on unless it concerns only us. MCP forbids to
// cancel initialize.
func (b *bridge) fromCancel(ctx context.Context, m mcp.Message) {
	at, _ := mcp.Lookup(m.Raw, "params", "requestId")
	key := mcp.ParseID(at.Of(m.Raw)).Key()
	r := b.open[key]
	switch {
	case private(key):
		return // nobody but us may name it
	case r != nil:
		if r.method != "initialize" && b.cancel(r) {
			b.forward(ctx, pending{message: m})
		}
	case key == "" || !b.cancelAnswered(key):
		b.forward(ctx, pending{message: m})
	}
}

// cancel cancels a request and reports whether that is news for Codex.
func (b *bridge) cancel(r *request) bool {
	if r.poll != nil {
		r.poll()
		b.settle(r)
		return false
	}
	if _, waited := b.withdraw(r); waited {
		b.settle(r)
		return false
	}
	return b.step(r, canceled)
}

// cancelAnswered cancels a request that was answered here and reports whether
// it was. An answer that the client has not got yet is withdrawn, and so is the
// job that it would have named.
func (b *bridge) cancelAnswered(key string) bool {
	for _, a := range slices.Backward(b.answered) {
		if a.key != key {
			continue
		}
		if b.out.Drop(key) && a.job != nil {
			a.job.Cancel()
		}
		return true
	}
	return false
}

// callOf returns the call in a message, nil if it calls none of our tools.
func (b *bridge) callOf(message []byte, env mcp.Envelope) *call {
	if env.Method != "tools/call" {
		return nil
	}
	name, _ := mcp.Lookup(message, "params", "name")
	called, ok := mcp.Text(name.Of(message))
	t := b.tools.tool(called)
	if !ok || t == nil {
		return nil
	}
	arguments, _ := mcp.Lookup(message, "params", "arguments")
	return &call{t, arguments}
}

// forward sends a message to the child, or lets it wait for one.
func (b *bridge) forward(ctx context.Context, p pending) {
	unread := b.waitingBytes
	if b.session != nil {
		unread += b.session.Input.Queued()
	}
	switch {
	case unread > 0 && unread+len(p.message.Raw) > maxUnread:
		b.log.Warn("refused a message: codex has not read those before it", "bytes", unread)
		if p.request != nil {
			b.respondError(p.request, mcp.CodeAborted, "mcp-agents: not sent to codex, which has not read the messages before it")
		}
	case b.phase == running:
		b.sendToChild(p)
	case b.phase == launching || b.phase == opening:
		b.wait(p)
	case p.request == nil: // nobody is there to take it
	case p.request.method == "tools/call":
		b.wait(p)
		if b.phase == absent {
			b.launch(ctx)
		}
	default:
		b.keepInitialize(p)
		b.answerLocally(p.request, nil)
	}
}

func (b *bridge) wait(p pending) {
	b.waiting = append(b.waiting, p)
	b.waitingBytes += len(p.message.Raw)
	b.armReadiness(p.request)
}

// withdraw removes and returns what waits of r, if it does.
func (b *bridge) withdraw(r *request) (pending, bool) {
	i := slices.IndexFunc(b.waiting, func(p pending) bool { return p.request == r })
	if i < 0 {
		return pending{}, false
	}
	p := b.waiting[i]
	b.waitingBytes -= len(p.message.Raw)
	b.waiting = slices.Delete(b.waiting, i, i+1)
	return p, true
}

// takeWaiting returns what waits and forgets it.
func (b *bridge) takeWaiting() []pending {
	all := b.waiting
	b.waiting, b.waitingBytes = nil, 0
	return all
}

// sendToChild queues a message for the child, translated if it is a call.
func (b *bridge) sendToChild(p pending) {
	s := b.session
	raw := p.message.Raw
	if p.call != nil {
		var logs []string
		t := transform{b.cfg.Goal, s.child.Agents}
		raw, logs = t.apply(p.call.tool.name, raw, p.call.arguments)
		for _, line := range logs {
			b.log.Info(line)
		}
	}
	if p.request != nil && p.request.method == "initialize" {
		b.keepInitialize(p)
		s.Initialized = true
	}
	s.Input.Write(proxy.Line(p.message, raw))
	if p.request != nil {
		b.watch(p.request)
	}
	b.armReadiness(p.request)
}
