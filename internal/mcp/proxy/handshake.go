package proxy

import (
	"encoding/json"
	"fmt"
	"reflect"

	"mcpagents/internal/mcp"
)

// handshake is what a session keeps of the handshake, for children to come.
type handshake struct {
	initialize  []byte // the client's line, once it was answered here or sent to a child
	initialized []byte // the line of the client's notification
	listed      []byte // the tools/list result that was given here and not yet compared
}

// keepInitialize saves r for children to come, if it is an initialize.
func (h *handshake) keepInitialize(r *Request) {
	if r.Method == "initialize" {
		h.initialize = WholeLine(r.Message)
	}
}

// openingLine is the saved initialize under an id of ours.
func (h *handshake) openingLine(id string) []byte {
	at, _ := mcp.Lookup(h.initialize, "id")
	return mcp.Splice(h.initialize, mcp.Edit{At: at, With: mcp.Encode(id)})
}

func listLine(id string) []byte {
	return append(mcp.Encode(map[string]any{"jsonrpc": "2.0", "id": id, "method": "tools/list"}), '\n')
}

// fromInitialized takes the client's notification that it has got the answer to
// its initialize.
func (s *Session[R]) fromInitialized(m mcp.Message) {
	s.initialized = WholeLine(m)
	if s.initialize != nil && s.Phase != Running {
		return // follows the initialize that the next child gets
	}
	s.Forward(Pending[R]{Message: m, initialized: true})
}

// handshakeOverdue answers r here because the child has not. Its own answer,
// should it still come, is swallowed.
func (s *Session[R]) handshakeOverdue(r R) {
	base := r.request()
	s.Log.Warn(fmt.Sprintf("%s has not answered %s within %s; answered without it", s.cfg.Name, base.Method, s.cfg.HandshakeTimeout))
	s.keepInitialize(base)
	if !s.Withdraw(r) {
		s.Suppress(r)
	} else if base.Method == "initialize" {
		s.remove(func(p Pending[R]) bool { return p.initialized }) // it follows the saved initialize
	}
	s.AnswerLocally(r, nil)
	s.Pump()
}

// AnswerLocally answers r without the child, which is missing because of err.
func (s *Session[R]) AnswerLocally(r R, err error) {
	switch r.request().Method {
	case "initialize":
		s.Respond(r, Initialize(s.initialize, s.cfg.Version))
	case "tools/list":
		s.listed = s.policy.Tools()
		s.RespondRaw(r, s.listed)
	case "ping":
		s.Respond(r, struct{}{})
	case "tools/call":
		s.policy.Unavailable(r, err)
	default:
		s.RespondError(r, mcp.CodeMethodNotFound, s.cfg.UnknownMethod)
	}
}

// FromPrivate takes the child's answer with a reserved id: to a request of ours.
func (s *Session[R]) FromPrivate(key string, env mcp.Envelope) {
	run := s.Child
	switch key {
	case "string:" + s.cfg.PrivateID("initialize", run.Number):
		switch {
		case s.Phase != Opening: // answered before
		case env.Result == nil:
			s.Fail(ErrRefused)
		default:
			run.Served = true
			if s.initialized != nil {
				run.Input.Write(s.initialized)
			}
			s.opened()
		}
	case "string:" + s.cfg.PrivateID("tools-list", run.Number):
		s.CompareTools(env.Result)
	}
}

// CompareTools tells the client when a child's tools differ from those that it
// was given here. The argument is a tools/list result of the child, nil if there
// is none.
func (s *Session[R]) CompareTools(result []byte) {
	if result == nil || s.listed == nil {
		return
	}
	if !sameTools(s.listed, s.policy.Listed(result)) {
		s.Own(Notification("notifications/tools/list_changed", nil), s.Framed, nil)
	}
	s.listed = nil
}

// sameTools reports whether two tools/list results list equal tools.
func sameTools(a, b []byte) bool {
	var x, y struct {
		Tools []map[string]any `json:"tools"`
	}
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
