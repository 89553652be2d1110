package proxy

import (
	"slices"

	"mcpagents/internal/mcp"
)

// maxUnread bounds in bytes what waits for a child that does not read. More is
// refused message by message: reading of the client goes on, so that its
// cancels and its end are seen.
const maxUnread = 64 << 20

// Pending is a message on its way to the child.
type Pending[R Entry] struct {
	Message mcp.Message
	Request R // the zero value for a message that needs no answer
	// Translate, if set, returns the bytes that the child gets in place of the
	// message's, nil for none. It is called when the child gets them.
	Translate func(raw []byte) []byte

	initialized bool // it is the notification of that name
}

// queue is what waits for the child, in order.
type queue[R Entry] struct {
	waiting []Pending[R]
	bytes   int
}

func (q *queue[R]) push(p Pending[R]) {
	q.waiting = append(q.waiting, p)
	q.bytes += len(p.Message.Raw)
}

// remove takes out what match accepts and returns it.
func (q *queue[R]) remove(match func(Pending[R]) bool) []Pending[R] {
	var removed []Pending[R]
	q.waiting = slices.DeleteFunc(q.waiting, func(p Pending[R]) bool {
		if !match(p) {
			return false
		}
		q.bytes -= len(p.Message.Raw)
		removed = append(removed, p)
		return true
	})
	return removed
}

// Waits reports whether r is in the queue.
func (q *queue[R]) Waits(r R) bool {
	return slices.ContainsFunc(q.waiting, func(p Pending[R]) bool { return p.Request == r })
}

// Withdraw removes r from the queue and reports whether it was there.
func (q *queue[R]) Withdraw(r R) bool {
	return len(q.remove(func(p Pending[R]) bool { return p.Request == r })) > 0
}

// Waiting returns the requests in the queue.
func (q *queue[R]) Waiting() []R { return requestsIn(q.waiting) }

// Take removes the requests that match from the queue and returns them.
func (q *queue[R]) Take(match func(R) bool) []R {
	var none R
	return requestsIn(q.remove(func(p Pending[R]) bool { return p.Request != none && match(p.Request) }))
}

func requestsIn[R Entry](all []Pending[R]) []R {
	var none R
	var found []R
	for _, p := range all {
		if p.Request != none {
			found = append(found, p.Request)
		}
	}
	return found
}

// call reports whether p starts a child if there is none.
func (p Pending[R]) call() bool {
	var none R
	return p.Request != none && p.Request.request().Method == "tools/call"
}

// Forward sends a message to the child, or lets it wait for one.
func (s *Session[R]) Forward(p Pending[R]) {
	var none R
	unread := s.bytes
	if s.Child != nil {
		unread += s.Child.Input.Queued()
	}
	if unread > 0 && unread+len(p.Message.Raw) > maxUnread {
		s.Log.Warn("refused a message: "+s.cfg.Name+" has not read those before it", "bytes", unread)
		if p.Request != none {
			s.RespondError(p.Request, mcp.CodeAborted, "mcp-agents: not sent to "+s.cfg.Called+", which has not read the messages before it")
		}
		return
	}
	if s.Phase == Closing && !s.cfg.HoldsWhileClosing && !p.call() {
		s.pass(p)
		return
	}
	s.push(p)
	s.Pump()
	if p.Request != none {
		s.armReady(p.Request)
	}
}

// Requeue puts handshake requests that a child has got in front of the queue, for
// the next child.
func (s *Session[R]) Requeue(rs []R) {
	var again []Pending[R]
	for _, r := range rs {
		base := r.request()
		base.Forwarded = false
		if base.Method == "initialize" {
			s.initialize = nil // it is sent as itself
		}
		again = append(again, Pending[R]{Message: base.Message, Request: r})
		s.bytes += len(base.Message.Raw)
	}
	s.waiting = append(again, s.waiting...)
}

// Pump passes on, in order, the messages that need not wait. A policy calls it
// after it changed what a message waits for.
func (s *Session[R]) Pump() {
	for len(s.waiting) > 0 && s.Outcome == nil {
		p := s.waiting[0]
		if !s.mayPass(p) {
			return
		}
		s.waiting = s.waiting[1:]
		s.bytes -= len(p.Message.Raw)
		s.pass(p)
	}
}

// mayPass reports whether the first in line may pass, and begins what it waits for.
func (s *Session[R]) mayPass(p Pending[R]) bool {
	switch {
	case !s.policy.MayPass(p) || s.Phase == Launching || s.Phase == Opening || s.Phase == Closing:
		return false
	case s.Phase == Absent && p.call():
		s.launch()
		return false
	}
	return true
}

// pass sends a message to the child, or answers it where there is none.
func (s *Session[R]) pass(p Pending[R]) {
	var none R
	r := p.Request
	if s.Phase != Running {
		if r != none {
			s.keepInitialize(r.request())
			s.AnswerLocally(r, nil)
		}
		return
	}
	raw := p.Message.Raw
	if p.Translate != nil {
		if raw = p.Translate(raw); raw == nil {
			return
		}
	}
	if r != none && r.request().Method == "initialize" {
		s.keepInitialize(r.request())
		s.Child.Initialized = true
	}
	s.Child.Input.Write(Line(p.Message, raw))
	if r != none {
		r.request().Forwarded = true
		s.policy.Sent(r)
		s.armReady(r)
	}
}
