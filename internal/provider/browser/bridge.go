package browser

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"time"

	"mcpagents/internal/mcp/proxy"
	"mcpagents/internal/mcp/stdio"
	"mcpagents/internal/provider/browser/lease"
)

// DefaultHandshakeTimeout is how long the handshake waits for the downstream.
const DefaultHandshakeTimeout = 5 * time.Second

// Config is what a bridge needs. Lessor, Downstream, Session and Viewport are
// required.
type Config struct {
	Lessor     lease.Lessor
	Downstream lease.Downstream
	Session    string // a UUID, new for each Run
	Viewport   string // WIDTHxHEIGHT
	AppPort    int    // 0: none
	LogFile    string // of the downstream; empty: none
	// AllowedURLPatterns, if there are any, must have passed CheckPatterns.
	AllowedURLPatterns []string
	// UploadNote says in the description of upload_file where its path is read;
	// empty means UploadUnsupported.
	UploadNote string
	// Version is this program's, for an initialize that is answered here.
	Version string
	// Ready, if set, is called once the client's messages are accepted.
	Ready func()
	// HandshakeTimeout is how long initialize, tools/list and ping wait for an
	// answer before they get it from here; 0 means the default.
	HandshakeTimeout time.Duration
	Times            Times // the zero Times means DefaultTimes
	// ClientIdle is how long a client may send nothing while no request is open
	// until it counts as gone; 0 means for ever.
	ClientIdle time.Duration
	// Watchdog looks for the death of the client's process; the zero value is off.
	Watchdog   stdio.Watchdog
	MaxMessage int // of the client, in bytes; 0 means 16 MiB
	Log        *slog.Logger
}

// Times are the times of a bridge.
type Times struct {
	Hard       time.Duration // of a request at all
	Idle       time.Duration // of a browser that says nothing; 0 means no limit
	Progress   time.Duration // between what a waiting call is told
	FlushStall time.Duration // of a half-written line that our messages wait behind
}

// DefaultTimes are the times of a server.
func DefaultTimes() Times {
	return Times{Hard: 10 * time.Minute, Idle: 10 * time.Minute, Progress: 5 * time.Second, FlushStall: time.Minute}
}

func (c *Config) fill() {
	c.Times = cmp.Or(c.Times, DefaultTimes())
	c.HandshakeTimeout = cmp.Or(c.HandshakeTimeout, DefaultHandshakeTimeout)
	c.UploadNote = cmp.Or(c.UploadNote, UploadUnsupported)
	if c.Ready == nil {
		c.Ready = func() {}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
}

// bridge is the state of one connection. All of it belongs to the event loop.
type bridge struct {
	cfg    Config
	ctx    context.Context // of Run
	log    *slog.Logger
	alarms *proxy.Clock
	out    *proxy.Output

	client *proxy.Client // its Messages is nil after their end
	framed bool          // the client's latest message was a frame
	gone   bool          // the client has sent its last message

	silence *proxy.Alarm // by when a client that sends nothing counts as gone

	open       map[string]*request // by id key
	sequence   uint64              // of requests
	answered   []string            // keys of the last requests that were answered here
	suppressed map[string]struct{} // keys of requests that were, while the downstream owes its answer
	queue      []pending           // what waits for the downstream or for the browser
	queueBytes int
	stall      *proxy.Alarm // by when a half-written line must end

	phase       phase
	session     *session // in opening and running
	sessions    int      // started so far
	stopLaunch  context.CancelFunc
	port        int              // control port of the downstream
	restarted   func(error)      // what waits for a restart; nil if it is none
	initialize  []byte           // the client's line, once it was answered
	initialized []byte           // the line of the client's notification
	listed      []byte           // the tools/list result that was given here and not yet compared
	list        []byte           // the last tools/list result of the downstream, as the client saw it
	tools       map[string]bool  // the names in it; nil before the first one
	questions   map[string]asked // requests of the downstream, by the id that the client knows
	askedIDs    map[string]int   // the session that used an id last
	aliases     int              // ids of ours that the client knows questions by

	state    state
	lease    *generation // in ready, checking and recovering
	attempts int         // of the acquire under way
	hung     bool        // the downstream must be started anew before it is used again
	asking   context.Context
	stopAsks context.CancelFunc // ends acquire, status and identity
	checks   int                // pre-checks so far; the last one counts
	askers   []func(string, error)
	reading  bool // an identity is being read
	idle     *proxy.Alarm

	work    chan func() // what ran outside of the loop has come to
	working int         // what runs outside of it
	verdict *proxy.Verdict
}

// Run is a bridge between the client on in and out and a downstream. It returns
// the exit status of the process when the client, the downstream or ctx has
// ended, the downstream is gone and the browser given back; a stdio.Signal as
// the cause of ctx gives 128 plus its number. Run closes in, if it is an
// io.Closer, to end its reading.
func Run(ctx context.Context, cfg Config, in io.Reader, out io.Writer) int {
	cfg.fill()
	client := proxy.Attend(in, cfg.MaxMessage, cfg.Watchdog)
	b := &bridge{
		cfg: cfg, ctx: ctx, log: cfg.Log, alarms: proxy.New(), out: proxy.NewOutput(out), client: client,
		open: map[string]*request{}, suppressed: map[string]struct{}{}, questions: map[string]asked{}, askedIDs: map[string]int{},
		work: make(chan func()), stopLaunch: func() {},
	}
	b.asking, b.stopAsks = context.WithCancel(context.WithoutCancel(ctx))
	defer b.stopAsks()
	b.log.Info("browser passthrough: session_id=" + cfg.Session)
	b.heard()
	b.launch()
	cfg.Ready()

	b.loop()
	b.shutdown()

	client.Leave()
	proxy.Abandon(b.out.Close(), nil)
	return b.verdict.Code
}

// loop handles events until there is a verdict.
func (b *bridge) loop() {
	for b.verdict == nil {
		var child proxy.Events
		if b.session != nil {
			child = b.session.Events(b.out.Full())
		}
		select {
		case e := <-b.client.Messages:
			b.heard()
			b.fromClient(e)
		case <-b.client.Died:
			b.orphaned()
		case p, ok := <-child.Stdout:
			b.fromChild(p, ok)
		case line, ok := <-child.Stderr:
			b.fromStderr(line, ok)
		case e := <-child.Ended:
			b.childEnded(e)
		case err := <-child.Written:
			b.session.Input.Wrote(err)
		case done := <-b.work:
			b.working--
			done()
		case err := <-b.out.Results():
			full := b.out.Full()
			if b.out.Wrote(err); err != nil {
				b.finish(proxy.OutputFailed(err, b.log))
			} else if full && !b.out.Full() {
				b.armIdle()
			}
		case <-b.alarms.Next():
			b.alarms.Ring()
		case <-b.ctx.Done():
			stopped := proxy.Stopped(context.Cause(b.ctx))
			stopped.Emit = true
			b.finish(stopped)
		}
	}
}

// outside runs work in a goroutine and what it returns in the event loop.
func (b *bridge) outside(work func() (done func())) {
	b.working++
	go func() { b.work <- work() }()
}
