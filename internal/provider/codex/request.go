package codex

import (
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
	proxy.Request

	state state
	hard  *proxy.Alarm
	grace *proxy.Alarm // of the state

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

// Reopen makes r a request that waits for an answer: the client has used its id again.
func (r *request) Reopen() {
	if r.poll != nil {
		r.poll()
		r.poll = nil
	}
	r.state, r.end = open, agent.Alive
}

// Settled stops what runs for a request.
func (b *bridge) Settled(r *request) {
	r.state = settled
	b.silence(r)
	b.Clock.Cancel(r.hard)
	b.Clock.Cancel(r.grace)
	delete(b.awaiting, r)
}

// silence stops what r says and expects while its turn runs. Progress that is
// queued leaves before whatever answers r.
func (b *bridge) silence(r *request) {
	b.Clock.Cancel(r.idle)
	r.progress.Stop()
	r.held = nil
	delete(b.holding, r)
}

// hush withdraws queued progress as well: nothing may follow a cancel.
func (b *bridge) hush(r *request) {
	b.silence(r)
	b.Out.Drop(progressTag{r.Key})
}
