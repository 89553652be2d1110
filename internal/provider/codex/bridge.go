package codex

import (
	"cmp"
	"context"
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

// phase says what becomes of a message for Codex.
type phase uint8

const (
	absent    phase = iota // no child: it is answered here, a call starts a launch
	launching              // it waits
	opening                // a child has our initialize but not answered it: it waits
	running                // it goes to the child
	closing                // a failed child is being destroyed: as absent, but a call waits for that
)

// bridge is the state of one connection. All of it belongs to the event loop.
type bridge struct {
	cfg    Config
	ctx    context.Context // of Run
	log    *slog.Logger
	tools  catalog
	alarms *proxy.Clock
	out    *proxy.Output

	client *proxy.Client // its Messages is nil after their end
	framed bool          // the client's latest message was a frame
	gone   bool          // the client has sent its last message
	idle   *proxy.Alarm  // by when the client must send something

	open     map[string]*request // by id key
	sequence uint64              // of requests
	answered []localAnswer       // the last ones
	// suppressed are requests that were settled here while Codex owes its
	// answer, by id key, and ended the keys of those that it need not answer.
	suppressed map[string]*request
	ended      []string
	awaiting   map[*request]struct{} // those that wait for the end of a line
	holding    map[*request]struct{} // those whose progress does
	stall      *proxy.Alarm          // by when the line must end
	questions  map[string]question   // of Codex, by id key

	jobs         *job.Table
	jobCalls     int    // calls of ours that ran jobs
	instance     string // in the ids of those calls
	threads      agent.Threads
	ledger       agent.Ledger
	loginInvalid bool

	phase        phase
	session      *session // in opening and running
	launches     int
	launched     chan launchResult
	stopLaunch   context.CancelFunc
	closed       chan struct{} // a failed child is gone
	waiting      []pending
	waitingBytes int

	initialize  []byte // the client's line, once it was answered here or sent to a child
	initialized []byte // the line of the client's notification
	listed      []byte // the tools/list result that was given here and not yet compared

	verdict *proxy.Outcome
}

// pending is a message that waits for a child.
type pending struct {
	message mcp.Message
	request *request // nil for what needs no answer
	call    *call    // of one of our tools
	// initialized says that it is the notification of that name.
	initialized bool
}

type launchResult struct {
	child *Child
	err   error
}

// Run is a bridge between the client on in and out and a Codex that cfg.Launch
// starts. It returns the exit status of the process when the client, Codex or
// ctx has ended and the child is closed; a stdio.Signal as the cause of ctx gives
// 128 plus its number. Run closes in, if it is an io.Closer, to end its reading.
func Run(ctx context.Context, cfg Config, in io.Reader, out io.Writer) int {
	cfg.fill()
	client := proxy.Attend(in, cfg.MaxMessage, cfg.Watchdog)
	b := &bridge{
		cfg: cfg, log: cfg.Log, tools: newCatalog(cfg.Models), alarms: proxy.New(), out: proxy.NewOutput(out),
		client: client, ctx: ctx, open: map[string]*request{}, suppressed: map[string]*request{},
		awaiting: map[*request]struct{}{}, holding: map[*request]struct{}{}, questions: map[string]question{}, ledger: agent.Ledger{Agent: "codex"}, instance: job.NewID(),
		launched: make(chan launchResult, 1), closed: make(chan struct{}, 1), stopLaunch: func() {},
	}
	b.jobs = b.newJobs()
	b.heard()
	b.launch(ctx)
	cfg.Ready()

	b.loop(ctx)
	b.shutdown()

	client.Leave()
	proxy.Abandon(b.out.Close(), nil)
	return b.verdict.Code
}

// loop handles events until there is a verdict.
func (b *bridge) loop(ctx context.Context) {
	for b.verdict == nil {
		var child proxy.Events
		if b.session != nil {
			child = b.session.Events(b.out.Full())
		}
		select {
		case e := <-b.client.Messages:
			b.fromClient(ctx, e)
		case p, ok := <-child.Stdout:
			b.fromChild(p, ok)
		case chunk, ok := <-child.Stderr:
			b.fromStderr(chunk, ok)
		case e := <-child.Ended:
			b.childEnded(e)
		case err := <-child.Written:
			b.session.Input.Wrote(err)
		case r := <-b.launched:
			b.launchEnded(r)
		case <-b.closed:
			b.childClosed(ctx)
		case <-b.client.Died:
			b.orphaned()
		case err := <-b.out.Results():
			full := b.out.Full()
			if b.out.Wrote(err); err != nil {
				b.finish(proxy.OutputFailed(err, b.log))
			} else if full && !b.out.Full() {
				b.drained()
			}
		case <-b.alarms.Next():
			b.alarms.Ring()
		case <-ctx.Done():
			b.finish(proxy.Stopped(context.Cause(ctx)))
		}
	}
}
