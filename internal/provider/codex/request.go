package codex

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"mcpagents/internal/agent"
	"mcpagents/internal/agent/job"
	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
	"mcpagents/internal/provider/codex/mcpserver"
)

// request is a request that has no answer yet: one of the client, or the one by
// which Codex runs a job. Its alarms are armed once Codex has it.
type request struct {
	id       mcp.ID
	key      string
	method   string
	framed   bool
	sequence uint64

	state     state
	handshake *proxy.Alarm // by when it is answered here
	hard      *proxy.Alarm
	grace     *proxy.Alarm // of the state

	idle   *proxy.Alarm
	heard  time.Time // of its last own event
	asking int       // requests of Codex about it that the client has not answered

	end          agent.Kind // how its turn has ended, agent.Alive while it runs
	endKind      string     // the event that said so
	lastMessage  string
	unauthorized bool   // an event said that the login is not accepted
	late         string // which deadline passed, such as "idle timeout (600s)"

	native *reply // while it is handled
	poll   func() // takes back a status call that waits; nil if it is none

	turn     *agent.Record    // nil if it is no turn
	said     mcpserver.Speech // of the turn
	progress *progress
	held     *progressMessage // progress that waits for the end of a line
	job      *job.Job         // nil for the client's
}

// reply is an answer of Codex.
type reply struct {
	piece proxy.Piece
	env   mcp.Envelope
}

// progressTag is the tag of progress in the output queue.
type progressTag struct{ key string }

// inOrder returns the open requests as they came.
func (b *bridge) inOrder() []*request {
	return slices.SortedFunc(maps.Values(b.open), func(x, y *request) int { return cmp.Compare(x.sequence, y.sequence) })
}

// settle forgets a request: it has its answer, or will have none.
func (b *bridge) settle(r *request) {
	r.state = settled
	b.silence(r)
	for _, a := range []*proxy.Alarm{r.handshake, r.hard, r.grace} {
		b.alarms.Cancel(a)
	}
	delete(b.awaiting, r)
	delete(b.open, r.key)
}

// silence stops what r says and expects while its turn runs. Progress that is
// queued leaves before whatever answers r.
func (b *bridge) silence(r *request) {
	b.alarms.Cancel(r.idle)
	r.progress.Stop()
	r.held = nil
	delete(b.holding, r)
}

// hush withdraws queued progress as well: nothing may follow a cancel.
func (b *bridge) hush(r *request) {
	b.silence(r)
	b.out.Drop(progressTag{r.key})
}

// rememberedAnswers bounds the memory of requests that were answered here.
const rememberedAnswers = 32

// localAnswer is a request that was answered here: a cancel of it is not
// Codex's business.
type localAnswer struct {
	key string
	job *job.Job // that it started
}

// respond answers r with a result of ours.
func (b *bridge) respond(r *request, result any) { b.answer(r, &mcp.Response{Result: result}) }

// respondError answers r with an error of ours. For a job it is why it failed.
func (b *bridge) respondError(r *request, code int, message string) {
	if r.job != nil {
		b.settle(r)
		r.job.Fail(strings.TrimPrefix(message, "mcp-agents: "), "")
		return
	}
	b.answer(r, &mcp.Response{Error: &mcp.Error{Code: code, Message: message}})
}

func (b *bridge) answer(r *request, response *mcp.Response) { b.answerOf(r, response, nil) }

// answerOf answers r, which started j.
func (b *bridge) answerOf(r *request, response *mcp.Response, j *job.Job) {
	b.settle(r)
	b.answered = append(b.answered, localAnswer{r.key, j})
	if len(b.answered) > rememberedAnswers {
		b.answered = b.answered[1:]
	}
	b.own(proxy.Response(r.id, response), r.framed, r.key)
}

// own queues a message of ours for the client.
func (b *bridge) own(body []byte, framed bool, tag any) {
	if err := b.out.Own(body, framed, tag); err != nil {
		b.finish(proxy.Outcome{Code: 1, Reason: err.Error()})
	}
	if b.midLine() {
		b.watchStall()
	}
}
