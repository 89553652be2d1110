package browser

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
)

// maxUnread bounds in bytes what waits for the downstream. More is refused
// message by message: reading of the client goes on, so that its cancels and its
// end are seen.
const maxUnread = 64 << 20

// Beginnings of ids that are ours.
const (
	initializeIDs = "mcp-agents/browser/initialize/"
	questionIDs   = "mcp-agents/browser/downstream-request/"
)

// reserved reports whether an id key is one that only we may use.
func reserved(key string) bool {
	return strings.HasPrefix(key, "string:"+initializeIDs) || strings.HasPrefix(key, "string:"+questionIDs)
}

// pending is a message that waits for its turn.
type pending struct {
	message mcp.Message
	request *request // nil for what needs no answer
	// answers is the id key of an answer to the downstream, empty if it is none.
	answers string
	// initialized says that it is the notification of that name.
	initialized bool
}

func (b *bridge) fromClient(e proxy.ClientEvent) {
	if fault, ok := errors.AsType[*mcp.MessageError](e.Err); ok {
		b.framed = fault.Mode == mcp.Framed
		b.refuseMessage(fault)
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
	case errors.Is(err, mcp.ErrTooDeep): // nobody has seen what it calls
		b.refuseMessage(&mcp.MessageError{Mode: m.Mode, Seen: env, Err: err})
	case env.HasMethod && env.ID.Usable():
		b.fromRequest(m, env)
	case env.HasMethod:
		b.fromNotification(m, env)
	case env.IsResponse():
		b.forward(pending{message: m, answers: env.ID.Key()})
	default: // a batch, a blank line, or no JSON: the downstream's business
		b.forward(pending{message: m})
	}
}

// refuseMessage answers a message that is not forwarded.
func (b *bridge) refuseMessage(fault *mcp.MessageError) {
	b.log.Warn("refused a message of the client", "error", fault)
	id := fault.Seen.ID
	switch {
	case fault.Seen.IsResponse(), !id.Usable(): // an answer would mean nothing to the client
		return
	case b.inFlight(id.Key()):
		b.reused(id)
		return
	}
	b.respondError(&request{id: id, key: id.Key(), framed: fault.Mode == mcp.Framed}, mcp.CodeInvalidRequest, fault.Error())
}

func (b *bridge) fromRequest(m mcp.Message, env mcp.Envelope) {
	r := &request{id: env.ID, key: env.ID.Key(), method: env.Method, framed: b.framed, sequence: b.sequence}
	b.sequence++
	switch {
	case reserved(r.key):
		b.respond(r, reservedID())
		return
	case b.inFlight(r.key):
		b.reused(r.id)
		return
	}
	b.open[r.key] = r
	r.browser = b.callsBrowser(m.Raw, env)
	r.hard = b.alarms.After(b.cfg.Times.Hard, func() { b.overdue(r) })
	if proxy.Handshake(r.method) {
		r.message = m
		_, r.page = mcp.Lookup(m.Raw, "params", "cursor")
		r.handshake = b.alarms.After(b.cfg.HandshakeTimeout, func() { b.handshakeOverdue(r) })
	}
	b.forward(pending{message: m, request: r})
	if r.browser && b.waits(r) {
		b.tellProgress(r, m.Raw)
	}
}

// callsBrowser reports whether a request calls a tool of the downstream. Before
// a list of them was seen, every name may be one.
func (b *bridge) callsBrowser(message []byte, env mcp.Envelope) bool {
	if env.Method != "tools/call" {
		return false
	}
	at, _ := mcp.Lookup(message, "params", "name")
	name, ok := mcp.Text(at.Of(message))
	return ok && (b.tools == nil || b.tools[name])
}

// inFlight reports whether an answer with the key is still to come.
func (b *bridge) inFlight(key string) bool {
	_, owed := b.suppressed[key]
	return b.open[key] != nil || owed
}

// reused ends the bridge because an id was used again while it was in flight:
// nobody could tell the two answers apart.
func (b *bridge) reused(id mcp.ID) {
	if b.open[id.Key()] == nil {
		b.open[id.Key()] = &request{id: id, key: id.Key(), framed: b.framed} // so that the second use has its error
	}
	b.finish(proxy.Verdict{Code: 1, Reason: fmt.Sprintf("request id %.64s was reused while it was in flight", id.Raw), Emit: true})
}

func (b *bridge) fromNotification(m mcp.Message, env mcp.Envelope) {
	switch env.Method {
	case "notifications/cancelled":
		b.fromCancel(m)
		return
	case "notifications/initialized":
		b.initialized = proxy.WholeLine(m)
		if b.initialize != nil && b.phase != running {
			return // follows the initialize that the next child gets
		}
	}
	b.forward(pending{message: m, initialized: env.Method == "notifications/initialized"})
}

// fromCancel passes a cancel on unless it concerns only us. What the downstream
// has got is still to be verified if it answers all the same.
func (b *bridge) fromCancel(m mcp.Message) {
	at, _ := mcp.Lookup(m.Raw, "params", "requestId")
	key := mcp.ParseID(at.Of(m.Raw)).Key()
	r := b.open[key]
	switch {
	case reserved(key):
	case r == nil && slices.Contains(b.answered, key):
		b.out.Drop(key) // an answer that the client has not got yet
	case r == nil:
		b.forward(pending{message: m})
	case r.method == "initialize": // MCP forbids it
	case b.waits(r):
		b.withdraw(r)
		b.hush(r)
		b.settle(r)
		b.pump()
	default:
		r.cancelled = true
		b.hush(r)
		if b.phase == running {
			b.session.Input.Write(proxy.Line(m, m.Raw))
		}
	}
}

// forward gives a message its turn.
func (b *bridge) forward(p pending) {
	unread := b.queueBytes
	if b.session != nil {
		unread += b.session.Input.Queued()
	}
	if unread > 0 && unread+len(p.message.Raw) > maxUnread {
		b.log.Warn("refused a message: those before it still wait", "bytes", unread)
		if p.request != nil {
			b.respondError(p.request, mcp.CodeAborted, "not sent to the browser's tool server, which has not read the messages before it")
		}
		return
	}
	b.queue = append(b.queue, p)
	b.queueBytes += len(p.message.Raw)
	b.pump()
}

// waits reports whether r is in the queue.
func (b *bridge) waits(r *request) bool {
	return slices.ContainsFunc(b.queue, func(p pending) bool { return p.request == r })
}

// withdraw removes r from the queue and returns what waited of it.
func (b *bridge) withdraw(r *request) (pending, bool) {
	i := slices.IndexFunc(b.queue, func(p pending) bool { return p.request == r })
	if i < 0 {
		return pending{}, false
	}
	p := b.queue[i]
	b.queueBytes -= len(p.message.Raw)
	b.queue = slices.Delete(b.queue, i, i+1)
	return p, true
}

// pump passes on, in order, what does not have to wait. Whoever changes what
// something waits for calls it.
func (b *bridge) pump() {
	for len(b.queue) > 0 && b.verdict == nil {
		p := b.queue[0]
		if !b.mayPass(p) {
			return
		}
		b.queue = b.queue[1:]
		b.queueBytes -= len(p.message.Raw)
		b.pass(p)
	}
}

// mayPass reports whether the first in line may pass, and begins what it waits
// for.
func (b *bridge) mayPass(p pending) bool {
	call := p.request != nil && p.request.method == "tools/call"
	switch {
	case b.state.holds() || b.phase == launching || b.phase == opening || b.phase == closing:
		return false
	case b.phase == absent && call:
		b.launch()
		return false
	case b.phase == absent || p.request == nil || !p.request.browser:
		return true
	case b.state == ready && p.request.cleared:
		return true
	}
	b.step(wanted) // changes nothing while a browser is given back
	return false
}

// pass sends a message to the downstream, or answers it where there is none.
func (b *bridge) pass(p pending) {
	r := p.request
	if b.phase == absent {
		if r != nil {
			b.keepInitialize(r)
			b.answerLocally(r, nil)
		}
		return
	}
	line := proxy.Line(p.message, p.message.Raw)
	if p.answers != "" {
		if line = b.answerFor(p.answers, line); line == nil {
			return // of a downstream that is gone
		}
	}
	if r != nil {
		r.forwarded = true
		b.stopProgress(r)
		if r.browser {
			r.generation = b.lease
		}
		if r.method == "initialize" {
			b.session.Initialized = true
		}
	}
	b.session.Input.Write(line)
}

// refuseHeld answers the browser calls in the queue. The rest keeps its order.
func (b *bridge) refuseHeld(result result) {
	var held []*request
	b.queue = slices.DeleteFunc(b.queue, func(p pending) bool {
		if p.request == nil || !p.request.browser {
			return false
		}
		b.queueBytes -= len(p.message.Raw)
		held = append(held, p.request)
		return true
	})
	for _, r := range held {
		b.respond(r, result)
	}
}
