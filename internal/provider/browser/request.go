package browser

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
)

// request is a request of the client that has no answer yet.
type request struct {
	id       mcp.ID
	key      string
	method   string
	framed   bool
	sequence uint64
	message  mcp.Message // of a handshake, which may be sent to another child

	browser    bool        // it is a call of a tool of the downstream
	page       bool        // it asks for a later page of tools/list
	cleared    bool        // the browser was looked at since it began to wait
	forwarded  bool        // the downstream has got it
	cancelled  bool        // the client wants no answer any more
	generation *generation // of a browser call: the lease when it was forwarded
	native     *reply      // the downstream's answer, while it is verified

	hard      *proxy.Alarm
	handshake *proxy.Alarm // by when it is answered here
	progress  *progress    // what its caller is told while it waits; nil if nothing
}

// reply is an answer of the downstream.
type reply struct {
	piece proxy.Piece
	env   mcp.Envelope
}

// rememberedAnswers bounds the memory of requests that were answered here.
const rememberedAnswers = 32

// inOrder returns the open requests as they came.
func (b *bridge) inOrder() []*request {
	return slices.SortedFunc(maps.Values(b.open), func(x, y *request) int { return cmp.Compare(x.sequence, y.sequence) })
}

// settle forgets a request: it has its answer, or will have none.
func (b *bridge) settle(r *request) {
	b.stopProgress(r)
	b.alarms.Cancel(r.hard)
	b.alarms.Cancel(r.handshake)
	if b.open[r.key] == r {
		delete(b.open, r.key)
	}
	if b.gone && !b.expectsAnswers() {
		b.finish(proxy.Verdict{Reason: "client disconnected", Emit: true})
	}
}

// respond answers r with a result of ours, or of the downstream changed.
func (b *bridge) respond(r *request, result any) { b.answer(r, &mcp.Response{Result: result}) }

// respondRaw answers r with a result that is JSON.
func (b *bridge) respondRaw(r *request, result []byte) { b.respond(r, json.RawMessage(result)) }

func (b *bridge) respondError(r *request, code int, message string) {
	b.answer(r, &mcp.Response{Error: &mcp.Error{Code: code, Message: prefix + message}})
}

// answer answers r, unless its caller wants nothing any more.
func (b *bridge) answer(r *request, response *mcp.Response) {
	b.settle(r)
	if b.answered = append(b.answered, r.key); len(b.answered) > rememberedAnswers {
		b.answered = b.answered[1:]
	}
	b.own(proxy.Response(r.id, response), r.framed, r.key)
}

// own queues a message of ours for the client.
func (b *bridge) own(body []byte, framed bool, tag any) {
	if err := b.out.Own(body, framed, tag); err != nil {
		b.finish(proxy.Verdict{Code: 1, Reason: err.Error()})
	}
	b.watchStall()
}
