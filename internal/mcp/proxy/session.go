package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/stdio"
)

// DefaultHandshakeTimeout is how long the handshake waits for the child.
const DefaultHandshakeTimeout = 5 * time.Second

// Config holds what a Session needs beside its Policy. Name is required.
type Config struct {
	Name   string // of the child, in logs and in reasons
	Called string // the child in texts for callers; empty means Name
	Label  string // of the provider, in its log lines
	// Version is this program's, for an initialize that is answered here.
	Version string
	// Ready, if set, is called once the client's messages are accepted.
	Ready func()
	// HandshakeTimeout is how long initialize, tools/list and ping wait for the
	// child before they are answered here; 0 means DefaultHandshakeTimeout.
	HandshakeTimeout time.Duration
	// ReadyTimeout is how long a call waits for a child that has not answered
	// initialize, and OpeningTimeout how long the child may take to answer the
	// one that it gets from here; 0 means no limit. Then it fails with a LateError.
	ReadyTimeout, OpeningTimeout time.Duration
	// FlushStall is how long messages of ours wait for a half-written line.
	FlushStall time.Duration
	// ClientIdle is how long a client may send nothing while no request is open
	// and Busy is not true, until it counts as gone; 0 means for ever.
	ClientIdle time.Duration
	Busy       func() bool // nil means never
	// Watchdog looks for the death of the client's process; the zero value is off.
	Watchdog   stdio.Watchdog
	MaxMessage int // of the client, in bytes; 0 means 16 MiB
	// MaxOwed bounds the answers that the child owes for requests that were
	// answered here: one that owes so many ends; 0 means no bound.
	MaxOwed int
	// Reserved are the beginnings of ids that only we use, and ReservedAnswer
	// answers a request of the client with such an id.
	Reserved       []string
	ReservedAnswer *mcp.Response
	// PrivateID is the id of a request of ours, initialize or tools-list, to the
	// child of the number.
	PrivateID func(what string, number int) string
	// UnknownMethod answers a request that only the child could answer, when
	// there is none; empty means "Method not found".
	UnknownMethod string
	// HoldsWhileClosing keeps everything in order while a child is destroyed.
	// Without it only calls wait then, since they start the next child.
	HoldsWhileClosing bool
	// EmitWhenStopped answers open requests with errors when the context ends.
	EmitWhenStopped bool
	// Signal names a signal; nil means "signal 9".
	Signal func(int) string
	Log    *slog.Logger // nil means slog.Default
}

func (c *Config) fill() {
	c.Called = cmp.Or(c.Called, c.Name)
	c.HandshakeTimeout = cmp.Or(c.HandshakeTimeout, DefaultHandshakeTimeout)
	c.UnknownMethod = cmp.Or(c.UnknownMethod, "Method not found")
	c.Log = cmp.Or(c.Log, slog.Default())
	if c.Ready == nil {
		c.Ready = func() {}
	}
	if c.Busy == nil {
		c.Busy = func() bool { return false }
	}
	if c.Signal == nil {
		c.Signal = func(n int) string { return fmt.Sprintf("signal %d", n) }
	}
}

// Policy holds the decisions of a provider. The Session calls every method but
// Launch in its event loop. Defaults has all those that have a usual answer.
type Policy[R Entry] interface {
	// Request takes a new request of the client: it opens and forwards it, or
	// answers it.
	Request(base Request, m mcp.Message, env mcp.Envelope)
	// Other takes any other message but a cancel.
	Other(m mcp.Message, env mcp.Envelope)
	// Cancel takes the client's cancel of an open request.
	Cancel(r R, m mcp.Message)
	// MayPass reports whether the first message in the queue may go on, as far
	// as the provider is concerned. It is asked again at each Pump.
	MayPass(p Pending[R]) bool
	// Sent takes a request that the child now has.
	Sent(r R)
	// Settled takes a request that is no longer open.
	Settled(r R)
	// ClientGone winds down after the client's last message.
	ClientGone()
	// Drained is called when a client that was behind reads again.
	Drained()

	// Launch starts a child, in a goroutine of its own.
	Launch(ctx context.Context) (Started, error)
	// Piece takes a piece of the child's stdout, and Line one that is whole.
	Piece(p Piece)
	Line(p Piece)
	// HalfLine reports whether messages of ours wait for the end of a line.
	HalfLine() bool
	// Stderr takes a part of the child's stderr.
	Stderr(chunk []byte)
	// Tools is the tools/list result for a client that asks without a child, and
	// Listed the one of a child as the client sees it.
	Tools() []byte
	Listed(result []byte) []byte
	// NotServed is the error for a child that ended before it served.
	NotServed() error
	// Failed takes an open request that the child will not answer because of
	// err, and Unavailable answers such a call.
	Failed(r R, err error)
	Unavailable(r R, err error)
	// Abort settles every open request, since the session ends.
	Abort(reason string)
}

// Started is a child that was just started.
type Started struct {
	Process Process
	// ReadStderr cuts the child's stderr into what Policy.Stderr gets.
	ReadStderr func(r io.Reader, yield func([]byte) bool)
	// Accept, if set, is called in the event loop, unless the session has ended.
	Accept func(*Run)
}

// Session is one connection of a client to a child. Its fields and methods
// belong to the event loop.
type Session[R Entry] struct {
	Clock   *Clock
	Out     *Output
	Log     *slog.Logger
	Framed  bool     // the client's latest message was a frame
	Gone    bool     // the client has sent its last message
	Outcome *Outcome // how the session ends; nil while it goes on
	requests[R]
	queue[R]
	link
	handshake

	cfg      Config
	policy   Policy[R]
	client   *Client
	idle     *Alarm          // by when the client must send something
	stall    *Alarm          // by when a half-written line must end
	running  context.Context // of Run
	asking   context.Context // of what runs outside: ends with the session, but not with running
	stopAsks context.CancelFunc
	work     chan func() // the rest of what ran outside
	working  int         // how much runs outside
}

// NewSession returns a Session of the policy, which may use it as soon as Run is called.
func NewSession[R Entry](cfg Config, policy Policy[R]) *Session[R] {
	cfg.fill()
	return &Session[R]{
		Clock: NewClock(), Log: cfg.Log, cfg: cfg, policy: policy, work: make(chan func()),
		requests: requests[R]{Open: map[string]R{}, Owed: map[string]R{}}, link: link{stopLaunch: func() {}},
	}
}

// Run serves the client on in and out until it, the child or ctx has ended, and
// returns when the child is closed and everything outside of the loop has ended.
// It closes in, if that is an io.Closer, to end its reading.
func (s *Session[R]) Run(ctx context.Context, in io.Reader, out io.Writer) Outcome {
	s.running = ctx
	s.asking, s.stopAsks = context.WithCancel(context.WithoutCancel(ctx))
	defer s.stopAsks()
	s.client = NewClient(in, s.cfg.MaxMessage, s.cfg.Watchdog)
	s.Out = NewOutput(out)
	s.restartIdle()
	s.launch()
	s.cfg.Ready()

	s.loop()
	s.shutdown()

	s.client.Close()
	Abandon(s.Out.Close(), nil)
	return *s.Outcome
}

// loop handles events until the session has an outcome.
func (s *Session[R]) loop() {
	for s.Outcome == nil {
		var child Events
		if s.Child != nil {
			child = s.Child.Events(s.Out.Full())
		}
		select {
		case e := <-s.client.Messages:
			s.fromClient(e)
		case <-s.client.Died:
			s.Log.Info("the client's process has ended")
			s.clientGone()
		case p, ok := <-child.Stdout:
			s.fromChild(p, ok)
		case chunk, ok := <-child.Stderr:
			s.fromStderr(chunk, ok)
		case e := <-child.Ended:
			s.childEnded(e)
		case err := <-child.Written:
			s.Child.Input.Wrote(err)
		case rest := <-s.work:
			s.working--
			rest()
		case err := <-s.Out.Results():
			s.wrote(err)
		case <-s.Clock.Next():
			s.Clock.Ring()
		case <-s.running.Done():
			stopped := Stopped(context.Cause(s.running))
			stopped.Emit = s.cfg.EmitWhenStopped
			s.Finish(stopped)
		}
	}
}

// wrote takes the result of a write to the client.
func (s *Session[R]) wrote(err error) {
	full := s.Out.Full()
	s.Out.Wrote(err)
	switch {
	case err != nil:
		s.Finish(OutputFailed(err, s.Log))
	case full && !s.Out.Full():
		s.policy.Drained()
	}
}

// Outside runs work in a goroutine and what it returns in the event loop. The
// context ends when the session shuts down, which waits for the work.
func (s *Session[R]) Outside(work func(ctx context.Context) (rest func())) {
	s.working++
	ctx := s.asking
	go func() { s.work <- work(ctx) }()
}

// Finish ends the event loop. The first outcome counts.
func (s *Session[R]) Finish(o Outcome) {
	if s.Outcome == nil {
		s.Outcome = &o
	}
}

// shutdown answers what is owed, writes what is queued, destroys the child and
// waits for everything that runs outside of the loop.
func (s *Session[R]) shutdown() {
	s.Log.Info(s.cfg.Label + " passthrough finalize: " + s.Outcome.Reason)
	if s.Outcome.Emit {
		s.takeHeld()
		s.policy.Abort(s.Outcome.Reason)
	}
	Flush(s.Out, s.Log)
	s.stopLaunch()
	s.stopAsks()
	for {
		if run := s.Child; run != nil {
			s.Child = nil
			s.destroy(run)
		}
		if s.working == 0 {
			return
		}
		rest := <-s.work
		s.working--
		rest()
	}
}

// takeHeld takes a message that a child which is still there has written but
// for its LF.
func (s *Session[R]) takeHeld() {
	if s.Child == nil || s.Out.Full() {
		return
	}
	if p, ok := s.Child.Held(); ok {
		s.policy.Line(p)
	}
}

// Errors of a child that does not serve.
var (
	ErrRefused  = errors.New("it refused the client's initialize")
	ErrStarting = errors.New("it is just being started") // and cannot be restarted
)

// LateError says that a child has not answered initialize in time.
type LateError struct{ After time.Duration }

func (e *LateError) Error() string {
	return fmt.Sprintf("it has not answered initialize within %s", e.After)
}
