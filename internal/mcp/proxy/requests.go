package proxy

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"mcpagents/internal/mcp"
)

// Request is a request that has no answer yet.
type Request struct {
	ID     mcp.ID
	Key    string // of the ID
	Method string
	Framed bool // its answer is framed, as it was
	// Message is the request itself, if it is one of the handshake: it may go to
	// another child.
	Message   mcp.Message
	Forwarded bool // the child has got it
	// Callback, if set, takes an answer of ours in place of the client.
	Callback func(*mcp.Response)

	sequence uint64
	overdue  *Alarm // by when it is answered here
}

// Entry is a request as a provider keeps it: a *Request, or a pointer to a type
// that embeds a Request.
type Entry interface {
	comparable
	request() *Request
	// Reopen makes the request one that waits for an answer, whatever has become
	// of it: its id was used again, which is an error.
	Reopen()
}

func (r *Request) request() *Request { return r }

// Reopen does nothing: a plain request has no state.
func (r *Request) Reopen() {}

// requests are the requests of a session.
type requests[R Entry] struct {
	Open map[string]R // by key
	// Owed are the requests that were settled here while the child owes its
	// answer, by key.
	Owed     map[string]R
	answered []answer // the last ones that were answered here
	sequence uint64
}

// rememberedAnswers bounds the memory of requests that were answered here.
const rememberedAnswers = 32

// answer is a request that was answered here. undo, if set, takes back what it
// has begun.
type answer struct {
	key  string
	undo func()
}

// InFlight reports whether an answer with the key is still to come.
func (rs *requests[R]) InFlight(key string) bool {
	_, open := rs.Open[key]
	_, owed := rs.Owed[key]
	return open || owed
}

// InOrder returns the open requests as they came.
func (rs *requests[R]) InOrder() []R {
	return slices.SortedFunc(maps.Values(rs.Open), func(x, y R) int {
		return cmp.Compare(x.request().sequence, y.request().sequence)
	})
}

// Add opens a request.
func (rs *requests[R]) Add(r R) {
	r.request().sequence = rs.sequence
	rs.sequence++
	rs.Open[r.request().Key] = r
}

// Settle forgets a request: it has its answer, or will have none.
func (s *Session[R]) Settle(r R) {
	base := r.request()
	s.Clock.Cancel(base.overdue)
	if s.Open[base.Key] == r {
		delete(s.Open, base.Key)
	}
	s.policy.Settled(r)
}

// Suppress drops the answer to r that may still come. Until then its id must
// not be used again. A child that owes too many answers does not answer at all.
func (s *Session[R]) Suppress(r R) {
	key := r.request().Key
	if s.Reserved(key) {
		return // its answer never goes to the client
	}
	s.Owed[key] = r
	if s.cfg.MaxOwed == 0 || len(s.Owed) < s.cfg.MaxOwed {
		return
	}
	s.Clock.After(0, func() {
		switch {
		case len(s.Owed) < s.cfg.MaxOwed || s.Gone || s.Outcome != nil:
		case s.Child != nil && !s.Child.Served:
			s.Fail(&LateError{s.cfg.HandshakeTimeout})
		default:
			s.Finish(Outcome{Code: 1, Reason: "late-response suppression limit reached", Emit: true})
		}
	})
}

// Respond answers r with a result of ours.
func (s *Session[R]) Respond(r R, result any) { s.Answer(r, &mcp.Response{Result: result}, nil) }

// RespondRaw answers r with a result that is JSON.
func (s *Session[R]) RespondRaw(r R, result []byte) { s.Respond(r, json.RawMessage(result)) }

// RespondError answers r with an error of ours.
func (s *Session[R]) RespondError(r R, code int, message string) {
	s.Answer(r, &mcp.Response{Error: &mcp.Error{Code: code, Message: message}}, nil)
}

// Answer answers r. undo, if set, is called should the client cancel r before
// it has got the answer.
func (s *Session[R]) Answer(r R, response *mcp.Response, undo func()) {
	s.Settle(r)
	s.reply(r.request(), response, undo)
}

// reply answers a request, which need not be open.
func (s *Session[R]) reply(r *Request, response *mcp.Response, undo func()) {
	if r.Callback != nil {
		r.Callback(response)
		return
	}
	s.answered = append(s.answered, answer{r.Key, undo})
	if len(s.answered) > rememberedAnswers {
		s.answered = s.answered[1:]
	}
	s.Own(Response(r.ID, response), r.Framed, r.Key)
}

// withdrawAnswer takes the client's cancel of a request that was answered here, and
// reports whether it was. An answer that the client has not got yet is withdrawn.
func (s *Session[R]) withdrawAnswer(key string) bool {
	for _, a := range slices.Backward(s.answered) {
		if a.key != key {
			continue
		}
		if s.Out.Drop(key) && a.undo != nil {
			a.undo()
		}
		return true
	}
	return false
}

// Own queues a message of ours for the client.
func (s *Session[R]) Own(body []byte, framed bool, tag any) {
	if err := s.Out.Own(body, framed, tag); err != nil {
		s.Finish(Outcome{Code: 1, Reason: err.Error()})
	}
	if s.policy.HalfLine() {
		s.WatchStall()
	}
}

// WatchStall ends the session if messages of ours wait longer than FlushStall
// for the end of a half-written line. More of them do not give it more time; a
// client that does not read does.
func (s *Session[R]) WatchStall() {
	if s.stall != nil {
		return
	}
	s.stall = s.Clock.After(s.cfg.FlushStall, func() {
		s.stall = nil
		switch {
		case s.Out.Full():
			s.WatchStall()
		case s.policy.HalfLine() && !s.Gone:
			s.Finish(Outcome{Code: 1, Emit: true, Reason: "generated messages could not be delivered for " + s.cfg.FlushStall.String() +
				" because " + s.cfg.Name + " left a frame unterminated"})
		}
	})
}

// LineEnded takes the end of a half-written line.
func (s *Session[R]) LineEnded() {
	s.Clock.Cancel(s.stall)
	s.stall = nil
}
