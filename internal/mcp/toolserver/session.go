package toolserver

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/stdio"
)

// stopping is the answer to calls that the end of the server overtakes.
const stopping = "Server is shutting down"

// reasonFault is the reason when nothing else was: the output takes no more.
const reasonFault = "stdout-error"

// session is one connection.
type session struct {
	*Server
	conn     *stdio.Server
	requests *inflight
	farewell sync.Once

	sending chan struct{} // held by the one who sends progress
	sent    int64         // progress notifications, under sending
}

func newSession(s *Server, work context.Context) *session {
	return &session{Server: s, requests: newInflight(work), sending: make(chan struct{}, 1)}
}

// options completes the transport's options with the session's hooks.
func (s *session) options(opts stdio.Options) stdio.Options {
	if opts.DrainTimeout == 0 {
		opts.DrainTimeout = DefaultDrainTimeout
	}
	if opts.StopTimeout <= 0 {
		opts.StopTimeout = stdio.DefaultStopTimeout
	}
	opts.Preempt = s.preempt
	opts.OnEvent = s.event
	opts.OnError = func(req *stdio.Request, err error) *mcp.Response {
		s.log.Error("answer failed", "method", req.Method, "error", err)
		return &mcp.Response{Error: &mcp.Error{Code: mcp.CodeInternal, Message: "Internal error"}}
	}
	return opts
}

// preempt sees messages in their order.
func (s *session) preempt(req *stdio.Request) {
	switch {
	case req.Check() != nil || req.IsResponse():
	case !req.IsNotification():
		s.requests.arrive(req)
	case req.Method == noteCancelled:
		if id := cancelledID(req.Params); s.requests.cancel(id) {
			s.log.Debug("request cancelled", "id", string(id.Raw))
		}
	}
}

// handle answers one message.
func (s *session) handle(gone context.Context, req *stdio.Request) (*mcp.Response, error) {
	if fault := req.Check(); fault != nil {
		return &mcp.Response{Error: fault}, nil
	}
	if req.IsNotification() || req.IsResponse() {
		return nil, nil
	}
	r := s.requests.take(req)
	defer r.end(nil)
	defer context.AfterFunc(gone, func() { r.end(ErrClientGone) })()
	if r.duplicate {
		return &mcp.Response{Error: &mcp.Error{
			Code: mcp.CodeInvalidRequest, Message: "Invalid Request: id is already in use by a request in flight",
		}}, nil
	}
	response := s.answer(r.ctx, req)
	if !s.requests.finish(r) {
		return nil, nil
	}
	return response, nil
}

func (s *session) answer(ctx context.Context, req *stdio.Request) *mcp.Response {
	switch req.Method {
	case methodInitialize:
		if s.config.Initialized != nil {
			s.config.Initialized()
		}
		return &mcp.Response{Result: initializeResult{
			ProtocolVersion: ProtocolVersion(req.Params),
			Capabilities:    map[string]map[string]any{"tools": {}},
			ServerInfo:      serverInfo{s.config.Name, s.config.Version},
		}}
	case methodPing:
		return &mcp.Response{Result: struct{}{}}
	case methodListTools:
		return &mcp.Response{Result: s.list}
	case methodCallTool:
		params, fault := parseCall(req.Params)
		if fault != nil {
			return &mcp.Response{Error: fault}
		}
		return &mcp.Response{Result: s.callTool(ctx, params)}
	}
	return &mcp.Response{Error: &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "Method not found"}}
}

// callTool runs a tool, with progress if the caller wants it. It returns when no
// progress of the call is still to be written.
func (s *session) callTool(ctx context.Context, params callParams) Result {
	tool, known := s.tools[params.name]
	if !known {
		tool.Call = func(context.Context, Call) (Result, error) {
			return failure("Unknown tool: " + params.name), nil
		}
	}
	call := Call{Arguments: params.arguments}
	if params.token == nil {
		return s.run(ctx, tool, call)
	}
	p := startProgress(ctx, func(ctx context.Context, message string) error {
		return s.sendProgress(ctx, params.token, message)
	}, s.heartbeat(tool))
	defer p.stop()
	call.Report = p.report
	return s.run(ctx, tool, call)
}

// run makes a result of whatever a tool does.
func (s *session) run(ctx context.Context, tool Tool, call Call) (result Result) {
	if !tool.whileStopping {
		if !s.requests.begin() {
			return failure(stopping)
		}
		defer s.requests.done()
	}
	defer func() {
		if value := recover(); value != nil {
			s.panicked(tool, value)
			result = failure("Internal error in tool " + tool.Name + ": it panicked; the server's log has the stack")
		}
	}()
	result, err := tool.Call(ctx, call)
	switch {
	case err == nil && result.Structured == nil:
		return result
	case err == nil:
		encoded, err := marshal(result.Structured)
		if err != nil {
			s.log.Error("tool result cannot be encoded", "tool", tool.Name, "error", err)
			return failure("Internal error in tool " + tool.Name + ": its result cannot be encoded")
		}
		result.Structured = json.RawMessage(encoded)
		return result
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return failure(stopping)
	}
	return failure(err.Error())
}

// heartbeat returns the tool's heartbeat, silent if it panics.
func (s *session) heartbeat(tool Tool) func(time.Duration) string {
	if tool.Heartbeat == nil {
		return nil
	}
	return func(elapsed time.Duration) string {
		defer func() {
			if value := recover(); value != nil {
				s.panicked(tool, value)
			}
		}()
		return tool.Heartbeat(elapsed)
	}
}

// panicked logs where a tool panicked. The value may hold what a model wrote;
// the stack does not.
func (s *session) panicked(tool Tool, value any) {
	s.log.Error("tool panicked", "tool", tool.Name, "stack", string(debug.Stack()))
	s.log.Debug("tool panicked", "tool", tool.Name, "value", value)
}

func (s *session) event(name string, fields ...slog.Attr) {
	s.log.LogAttrs(context.Background(), slog.LevelDebug, name, fields...)
	switch name {
	case stdio.EventOutputError:
		s.shuttingDown("stdout-epipe")
	case stdio.EventIdleTimeout:
		s.shuttingDown("idle-timeout")
	case stdio.EventParentExit:
		s.shuttingDown("parent-exit")
	}
}

// shuttingDown logs why the server ends and reports whether this is the first
// reason, which counts.
func (s *session) shuttingDown(reason string) (first bool) {
	s.farewell.Do(func() {
		first = true
		s.log.Info("shutting down", "provider", s.config.Provider, "reason", reason)
	})
	return first
}
