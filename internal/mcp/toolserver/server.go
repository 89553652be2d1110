package toolserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"mcpagents/internal/mcp/stdio"
)

// DefaultDrainTimeout bounds the wait for owed answers after the end of the
// input. Answers that take longer are those of agents at work for a client that
// has left; their contexts then end.
const DefaultDrainTimeout = 2 * time.Second

// Config describes a [Server].
type Config struct {
	// Provider names the server in its log lines.
	Provider string

	// Name and Version are what initialize tells about the server.
	Name    string
	Version string

	// Tools are listed in this order.
	Tools []Tool

	// Initialized, if set, is called when a client has asked for initialize: it
	// is there to stay, and something may be prepared for its calls. It must not
	// block.
	Initialized func()

	// Stdio holds limits, timeouts, the idle timer and the parent watchdog. The
	// server sets the hooks Preempt, OnError and OnEvent itself, and a
	// DrainTimeout of 0 means [DefaultDrainTimeout].
	Stdio stdio.Options

	// Log takes what the server has to say; nil means slog's default. It must
	// not write to the output.
	Log *slog.Logger
}

// Server answers MCP requests with the tools of one provider. It holds no state
// of a connection.
type Server struct {
	config Config
	tools  map[string]Tool
	list   json.RawMessage // the result of tools/list
	log    *slog.Logger
}

// New returns a Server, or an error that names the tool that clients would
// refuse: a name or schema that they do not take, or a name used twice.
func New(config Config) (*Server, error) {
	s := &Server{config: config, tools: map[string]Tool{}, log: config.Log}
	if s.log == nil {
		s.log = slog.Default()
	}
	listed := []listedTool{}
	for _, tool := range config.Tools {
		if err := tool.check(); err != nil {
			return nil, err
		}
		if _, twice := s.tools[tool.Name]; twice {
			return nil, fmt.Errorf("tool %s: is there twice", tool.Name)
		}
		s.tools[tool.Name] = tool
		listed = append(listed, listedTool{tool.Name, tool.Description, slices.Clone(tool.InputSchema)})
	}
	var err error
	s.list, err = marshal(map[string]any{"tools": listed})
	return s, err
}

// Serve answers one client until the input ends, the output is closed, the idle
// time is over or the parent died (all of these return nil), ctx ends (its cause
// is returned) or a fault. What came first decides.
//
// When ctx ends, running tools are told by their contexts and get the stop
// timeout to answer; pings are answered meanwhile and other calls refused. The
// text of the cause, such as "SIGTERM", is the reason that is logged. At the end
// of the input, tools get the drain timeout to finish before they are told. A
// tool that ignores its context holds the end up for at most twice the stop
// timeout.
func (s *Server) Serve(ctx context.Context, in io.ReadCloser, out io.Writer) error {
	work, endWork := context.WithCancelCause(context.WithoutCancel(ctx))
	defer endWork(nil)
	loop, endLoop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer endLoop(nil)
	c := newSession(s, work)
	opts := c.options(s.config.Stdio)
	c.conn = stdio.NewServer(&watchedInput{in, c}, out, c.handle, opts)

	over, watched := make(chan struct{}), make(chan struct{})
	signalled := false
	go func() {
		defer close(watched)
		select {
		case <-ctx.Done():
		case <-over:
			return
		}
		cause := context.Cause(ctx)
		signalled = c.shuttingDown(cause.Error())
		idle := c.requests.stop()
		endWork(cause)
		limit := time.NewTimer(opts.StopTimeout)
		defer limit.Stop()
		select {
		case <-idle:
		case <-limit.C:
		case <-over:
		}
		endLoop(cause)
	}()

	s.log.Info("ready (provider: " + s.config.Provider + ")")
	err := c.conn.Serve(loop)
	close(over)
	<-watched
	c.shuttingDown(reasonFault)
	if signalled {
		return context.Cause(ctx)
	}
	return err
}

// watchedInput tells its session when the input ends.
type watchedInput struct {
	io.ReadCloser
	session *session
}

func (w *watchedInput) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	switch err {
	case nil:
	case io.EOF:
		w.session.shuttingDown("stdin-end")
	default:
		w.session.shuttingDown("stdin-close")
	}
	return n, err
}

// Close is called by the transport when it ends for a reason of its own.
func (w *watchedInput) Close() error {
	w.session.shuttingDown(reasonFault)
	return w.ReadCloser.Close()
}
