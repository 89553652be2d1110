package stdio

import (
	"errors"
	"log/slog"
	"time"

	"mcpagents/internal/mcp"
)

// Names of the lifecycle events and of their fields.
const (
	EventStarted     = "stdio_started" // cwd, idle_timeout_ms
	EventRequest     = "request"       // id (as written, "" if absent), method
	EventResponse    = "response"      // is_error
	EventIdleTimeout = "idle_timeout"
	EventParentExit  = "parent_exit"
	EventOutputError = "output_error" // error
	EventStopped     = "stdio_stopped"
)

// Defaults of [Options].
const (
	DefaultDrainTimeout = 10 * time.Second
	DefaultStopTimeout  = 10 * time.Second
	DefaultMaxPending   = 64 << 20
)

// ErrOutputStalled says that a write made no progress for the write timeout,
// or that answers could not be written before the loop had to end.
var ErrOutputStalled = errors.New("output stalled: the client does not read")

// Options configure a [Server]. In the zero value the idle timer, the watchdog
// and the write timeout are off.
type Options struct {
	// MaxMessage is the longest message in bytes; 0 means [DefaultMaxMessage].
	MaxMessage int

	// MaxPending bounds the bytes of open requests and of answers that wait
	// for the output; 0 means [DefaultMaxPending]. Reading goes on while the
	// output is blocked, so that a cancel arrives, and pauses only above this.
	MaxPending int

	// DrainTimeout bounds the time from the end of the input until owed
	// answers are written; 0 means [DefaultDrainTimeout], less means none.
	// After it the handlers' contexts end.
	DrainTimeout time.Duration

	// StopTimeout bounds the wait for handlers whose contexts have ended; 0
	// means [DefaultStopTimeout].
	StopTimeout time.Duration

	// WriteTimeout ends the loop with [ErrOutputStalled] when one write takes
	// longer; 0 means no limit.
	WriteTimeout time.Duration

	// IdleTimeout closes the input after so long without a message or an open
	// request; 0 means never. See [IdleTimer] and [DefaultIdleTimeout].
	IdleTimeout time.Duration

	// Busy reports work that outlives its request, such as a background job.
	Busy func() bool

	// OnIdle runs when the idle time is over, before the input is closed.
	OnIdle func()

	// Watchdog is off unless its interval is set.
	Watchdog Watchdog

	// Preempt, if set, sees each request on the reading goroutine, in the order
	// of arrival and before its handler starts. It must not block. It is the
	// place to note a request so that a cancel right behind it finds it.
	Preempt func(*Request)

	// OnParseError, if set, decides on the answer to a message that could not
	// be used: answer is the default, nil suppresses it.
	OnParseError func(err *mcp.MessageError, answer *mcp.Error) *mcp.Error

	// OnError, if set, is told a handler's error, or that its answer could not
	// be encoded, and returns what to answer; nil answers nothing and the loop
	// goes on. Without OnError such an error ends the loop.
	OnError func(req *Request, err error) *mcp.Response

	// OnEvent, if set, receives the lifecycle events one at a time. It must not
	// block.
	OnEvent func(name string, fields ...slog.Attr)
}

// DefaultOptions returns the library's defaults, which have the idle timer on.
func DefaultOptions() Options { return Options{IdleTimeout: DefaultIdleTimeout} }

func (o *Options) fill() {
	if o.MaxPending <= 0 {
		o.MaxPending = DefaultMaxPending
	}
	if o.DrainTimeout == 0 {
		o.DrainTimeout = DefaultDrainTimeout
	}
	if o.StopTimeout <= 0 {
		o.StopTimeout = DefaultStopTimeout
	}
}
