package codex

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"mcpagents/internal/agent"
	"mcpagents/internal/agent/job"
	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
	"mcpagents/internal/mcp/stdio"
)

// Defaults of a Config.
const (
	DefaultHandshakeTimeout = 5 * time.Second
	DefaultClientGoneGrace  = 60 * time.Second
)

// Config is what a bridge needs. Launch is required.
type Config struct {
	Launch Launcher
	// Ready, if set, is called once the client's messages are accepted.
	Ready func()
	// Version is this program's, for an initialize that is answered here.
	Version string
	// Models are those that a call may name; empty means DefaultModels.
	Models []string
	// Goal is the objective of every thread whose call names none.
	Goal string
	// CheckCwd returns the problem of a working directory, empty if it has
	// none; nil accepts every absolute path.
	CheckCwd func(path string) (problem string)
	// HandshakeTimeout is how long initialize, tools/list and ping wait for
	// Codex, and calls for a Codex that has started; 0 means the default.
	HandshakeTimeout time.Duration
	// ClientGoneGrace is how long Codex may take to end after the client's
	// last message; 0 means the default.
	ClientGoneGrace time.Duration
	// Times bound what is under way; the zero Times means DefaultTimes.
	Times Times
	// MaxCommentary is how much commentary of a job is kept, in bytes; 0 means
	// 1 MiB.
	MaxCommentary int
	// MaxMessage bounds a message of the client in bytes; 0 means 16 MiB.
	MaxMessage int
	// ClientIdle is how long a client may send nothing while no request is open
	// and no job runs, until it counts as gone; 0 means for ever.
	ClientIdle time.Duration
	// Watchdog looks for the death of the client's process; the zero value is off.
	Watchdog stdio.Watchdog
	Log      *slog.Logger // nil means slog.Default
}

// Times are the times of requests, turns and jobs.
type Times struct {
	Idle             time.Duration // without an own event; 0 means no limit
	Hard             time.Duration // of a request at all
	CancelGrace      time.Duration // for the confirmation of a cancel
	TerminalGrace    time.Duration // between a turn's end and its answer
	FlushStall       time.Duration // of a half-written line
	StatusInterval   time.Duration // between changes of a job's message; 0 means all
	ProgressInterval time.Duration // between statuses of a call
	WaitInterval     time.Duration // without one until a notice
}

// DefaultTimes are the times of a server.
func DefaultTimes() Times {
	return Times{Idle: 10 * time.Minute, Hard: 2 * time.Hour, CancelGrace: 30 * time.Second, TerminalGrace: time.Second,
		FlushStall: time.Minute, StatusInterval: 30 * time.Second, ProgressInterval: time.Second, WaitInterval: 10 * time.Second}
}

func (c *Config) fill() {
	c.Times = cmp.Or(c.Times, DefaultTimes())
	c.HandshakeTimeout = cmp.Or(c.HandshakeTimeout, DefaultHandshakeTimeout)
	c.ClientGoneGrace = cmp.Or(c.ClientGoneGrace, DefaultClientGoneGrace)
	if len(c.Models) == 0 {
		c.Models = DefaultModels
	}
	if c.Ready == nil {
		c.Ready = func() {}
	}
	if c.CheckCwd == nil {
		c.CheckCwd = func(string) string { return "" }
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
}

// bridge is the state of one connection. All of it belongs to the event loop of
// the proxy's session, whose policy it is.
type bridge struct {
	proxy.Defaults[*request]
	cfg     Config
	tools   catalog
	session *session // of the child

	ended     []string              // the keys of settled requests that Codex need not answer
	awaiting  map[*request]struct{} // those that wait for the end of a line
	holding   map[*request]struct{} // those whose progress does
	questions map[string]question   // of Codex, by id key

	jobs         *job.Table
	jobCalls     int    // calls of ours that ran jobs
	instance     string // in the ids of those calls
	threads      agent.Threads
	ledger       agent.Ledger
	loginInvalid bool
}

// Run is a bridge between the client on in and out and a Codex that cfg.Launch
// starts. It returns the exit status of the process when the client, Codex or
// ctx has ended and the child is closed; a stdio.Signal as the cause of ctx gives
// 128 plus its number. Run closes in, if it is an io.Closer, to end its reading.
func Run(ctx context.Context, cfg Config, in io.Reader, out io.Writer) int {
	cfg.fill()
	b := &bridge{
		cfg: cfg, tools: newCatalog(cfg.Models), awaiting: map[*request]struct{}{}, holding: map[*request]struct{}{},
		questions: map[string]question{}, ledger: agent.Ledger{Agent: "codex"}, instance: job.NewID(),
	}
	b.Session = proxy.NewSession(proxy.Config{
		Name: "codex", Label: "codex", Version: cfg.Version, Ready: cfg.Ready,
		HandshakeTimeout: cfg.HandshakeTimeout, ReadyTimeout: cfg.HandshakeTimeout, FlushStall: cfg.Times.FlushStall, MaxOwed: maxSuppressed,
		ClientIdle: cfg.ClientIdle, Busy: func() bool { return len(b.jobs.Active()) > 0 }, Watchdog: cfg.Watchdog, MaxMessage: cfg.MaxMessage,
		Reserved: []string{privateIDs}, ReservedAnswer: &mcp.Response{Error: &mcp.Error{Code: mcp.CodeInvalidRequest,
			Message: "mcp-agents: ids that begin with " + privateIDs + " are reserved"}},
		PrivateID: func(what string, number int) string { return fmt.Sprintf("%scodex/%s/%d", privateIDs, what, number) },
		Signal:    signalName, Log: cfg.Log,
	}, b)
	b.jobs = b.newJobs()
	outcome := b.Session.Run(ctx, in, out)
	if line := b.ledger.Rest(); line != "" {
		b.Log.Warn(line)
	}
	return outcome.Code
}
