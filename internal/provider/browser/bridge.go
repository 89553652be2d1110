package browser

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"time"

	"mcpagents/internal/mcp"
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

// bridge is the state of one connection. All of it belongs to the event loop of
// the proxy's session, whose policy it is.
type bridge struct {
	proxy.Defaults[*request]
	cfg Config

	port      int              // control port of the downstream
	tail      []string         // of its stderr
	long      *longLine        // of its stdout, while one is too long to hold
	list      []byte           // the last tools/list result of the downstream, as the client saw it
	tools     map[string]bool  // the names in it; nil before the first one
	questions map[string]asked // requests of the downstream, by the id that the client knows
	askedIDs  map[string]int   // the child that used an id last
	aliases   int              // ids of ours that the client knows questions by

	state    state
	lease    *generation // in ready, checking and recovering
	attempts int         // of the acquire under way
	hung     bool        // the downstream must be started anew before it is used again
	checks   int         // pre-checks so far; the last one counts
	askers   []func(string, error)
	reading  bool // an identity is being read
	idle     *proxy.Alarm
}

// Run is a bridge between the client on in and out and a downstream. It returns
// the exit status of the process when the client, the downstream or ctx has
// ended, the downstream is gone and the browser given back; a stdio.Signal as
// the cause of ctx gives 128 plus its number. Run closes in, if it is an
// io.Closer, to end its reading.
func Run(ctx context.Context, cfg Config, in io.Reader, out io.Writer) int {
	cfg.fill()
	b := &bridge{cfg: cfg, questions: map[string]asked{}, askedIDs: map[string]int{}}
	b.Session = proxy.NewSession(proxy.Config{
		Name: "chrome-devtools-mcp", Called: "the browser's tool server", Label: "browser",
		Version: cfg.Version, Ready: cfg.Ready, HandshakeTimeout: cfg.HandshakeTimeout, OpeningTimeout: cfg.Times.Hard, FlushStall: cfg.Times.FlushStall,
		ClientIdle: cfg.ClientIdle, Watchdog: cfg.Watchdog, MaxMessage: cfg.MaxMessage,
		Reserved: []string{initializeIDs, questionIDs}, ReservedAnswer: &mcp.Response{Result: reservedID()},
		PrivateID: b.privateID, UnknownMethod: prefix + "method not found", HoldsWhileClosing: true, EmitWhenStopped: true, Log: cfg.Log,
	}, b)
	b.Log.Info("browser passthrough: session_id=" + cfg.Session)
	outcome := b.Session.Run(ctx, in, out)
	if g := b.lease; g != nil {
		b.releaseEnded(lease.Shutdown, b.cfg.Lessor.Release(context.WithoutCancel(ctx), g.record, lease.Shutdown))
	}
	return outcome.Code
}
