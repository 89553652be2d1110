package proxy

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"mcpagents/internal/mcp"
)

// fromClient takes a message of the client, or the end of them.
func (s *Session[R]) fromClient(e ClientEvent) {
	s.restartIdle()
	if fault, ok := errors.AsType[*mcp.MessageError](e.Err); ok {
		s.Framed = fault.Mode == mcp.Framed
		s.refuse(fault)
		return
	}
	if e.Err != nil {
		if !errors.Is(e.Err, io.EOF) {
			s.Log.Warn("reading from the client failed", "error", e.Err)
		}
		s.clientGone()
		return
	}
	m := e.Message
	s.Framed = m.Mode == mcp.Framed
	env, err := mcp.ParseEnvelope(m.Raw)
	switch {
	case errors.Is(err, mcp.ErrTooDeep): // its arguments cannot be checked
		s.refuse(&mcp.MessageError{Mode: m.Mode, Seen: env, Err: err})
	case env.HasMethod && env.ID.Usable():
		s.fromRequest(m, env)
	case env.HasMethod && env.Method == "notifications/cancelled":
		s.fromCancel(m)
	case env.HasMethod && env.Method == "notifications/initialized":
		s.fromInitialized(m)
	default: // such as a batch, a blank line, or no JSON: for the child to judge
		s.policy.Other(m, env)
	}
}

// refuse answers a message that is not forwarded.
func (s *Session[R]) refuse(fault *mcp.MessageError) {
	s.Log.Warn("refused a message of the client", "error", fault)
	id := fault.Seen.ID
	switch {
	case fault.Seen.IsResponse(), !id.Usable(): // the client could not match an answer
	case s.InFlight(id.Key()):
		s.reused(id)
	default:
		s.reply(&Request{ID: id, Key: id.Key(), Framed: s.Framed},
			&mcp.Response{Error: &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "mcp-agents: " + fault.Error()}}, nil)
	}
}

func (s *Session[R]) fromRequest(m mcp.Message, env mcp.Envelope) {
	r := Request{ID: env.ID, Key: env.ID.Key(), Method: env.Method, Framed: s.Framed}
	switch {
	case s.Reserved(r.Key):
		s.reply(&r, s.cfg.ReservedAnswer, nil)
		return
	case s.InFlight(r.Key):
		s.reused(r.ID)
		return
	}
	if Handshake(r.Method) {
		r.Message = m
	}
	s.policy.Request(r, m, env)
}

// Accept opens a request of the client. One of the handshake is answered here
// if the child does not answer it in time.
func (s *Session[R]) Accept(r R) {
	s.Add(r)
	if base := r.request(); Handshake(base.Method) {
		base.overdue = s.Clock.After(s.cfg.HandshakeTimeout, func() { s.handshakeOverdue(r) })
	}
}

// BeingAnswered takes the beginning of an answer to r that is not whole yet.
func (s *Session[R]) BeingAnswered(r R) { s.Clock.Cancel(r.request().overdue) }

// reused ends the session because an id was used again while it was in flight:
// the client could not tell the two answers apart.
func (s *Session[R]) reused(id mcp.ID) {
	r, open := s.Open[id.Key()]
	if !open {
		r = s.Owed[id.Key()]
		s.Open[id.Key()] = r // so that the second use gets an error
	}
	r.Reopen()
	s.Finish(Outcome{Code: 1, Reason: fmt.Sprintf("request id %.64s was reused while it was in flight", id.Raw), Emit: true})
}

// Reserved reports whether an id key is one that only we may use.
func (s *Session[R]) Reserved(key string) bool {
	id, isString := strings.CutPrefix(key, "string:")
	return isString && slices.ContainsFunc(s.cfg.Reserved, func(prefix string) bool { return strings.HasPrefix(id, prefix) })
}

// fromCancel takes the client's cancel of a request. MCP forbids to cancel initialize.
func (s *Session[R]) fromCancel(m mcp.Message) {
	at, _ := mcp.Lookup(m.Raw, "params", "requestId")
	key := mcp.ParseID(at.Of(m.Raw)).Key()
	r, open := s.Open[key]
	switch {
	case s.Reserved(key): // only we may name it
	case open && r.request().Method == "initialize":
	case open:
		s.policy.Cancel(r, m)
	case !s.withdrawAnswer(key):
		s.Forward(Pending[R]{Message: m})
	}
}

// clientGone takes the end of the client's messages.
func (s *Session[R]) clientGone() {
	s.Gone, s.client.Messages, s.client.Died = true, nil, nil
	s.Clock.Cancel(s.idle)
	s.policy.ClientGone()
}

// restartIdle starts the client's idle time anew.
func (s *Session[R]) restartIdle() {
	if s.cfg.ClientIdle <= 0 || s.Gone {
		return
	}
	s.Clock.Cancel(s.idle)
	s.idle = s.Clock.After(s.cfg.ClientIdle, func() {
		if len(s.Open) > 0 || s.cfg.Busy() {
			s.restartIdle()
			return
		}
		s.Log.Info("the client sent nothing for " + s.cfg.ClientIdle.String())
		s.clientGone()
	})
}
