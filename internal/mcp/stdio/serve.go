package stdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"mcpagents/internal/mcp"
)

// Handler answers one message: a request, a notification, a response to a
// request of ours, or, with the zero Envelope, an array or scalar. Handlers run
// concurrently. A nil Response answers nothing, and whatever answers a
// notification is dropped (JSON-RPC 2.0 section 4.1). A handler returns soon
// after its context has ended; the context's error then answers nothing.
type Handler func(ctx context.Context, req *Request) (*mcp.Response, error)

// Request is one message for a handler.
type Request struct {
	mcp.Envelope
	Message mcp.Message
	ctx     context.Context
	cancel  context.CancelFunc
}

// Cancel ends the context of the request's handler.
func (r *Request) Cancel() { r.cancel() }

// closeGrace bounds the wait for a read or write to notice that its stream was
// closed. A blocking descriptor may never notice; its goroutine then stays in
// the system call until the process ends.
const closeGrace = 250 * time.Millisecond

// Reasons for the end of a loop that are no faults.
var (
	errInputEnd   = errors.New("end of input")
	errIdle       = errors.New("idle timeout")
	errParentExit = errors.New("parent exited")
)

// Server reads messages, runs the handler on each and writes the answers. It
// serves once.
type Server struct {
	in      io.Reader
	out     io.Writer
	handler Handler
	opts    Options

	reader *Reader
	writer *Writer
	idle   *IdleTimer

	mode    atomic.Uint32 // framing of the client's latest message
	writing atomic.Int32  // writes in progress or waiting their turn
	closing atomic.Bool   // we closed the input ourselves
	over    ending        // of the loop
	fault   ending        // the first fault; it counts even after the input's end

	open    sync.WaitGroup // messages whose handler or answer is not done
	mu      sync.Mutex
	room    *sync.Cond // pending fell, or closed was set
	pending int        // bytes of open messages and unwritten answers
	closed  bool       // no message is taken any more

	events  sync.Mutex
	stopped bool // the last event is out
}

// NewServer returns a Server. in and out are closed, if they can be, only when
// the loop ends while a read or write on them is still waiting.
func NewServer(in io.Reader, out io.Writer, handler Handler, opts Options) *Server {
	opts.fill()
	s := &Server{in: in, out: out, handler: handler, opts: opts}
	s.room = sync.NewCond(&s.mu)
	s.over.done, s.fault.done = make(chan struct{}), make(chan struct{})
	s.reader = NewReader(in, ReaderOptions{MaxMessage: opts.MaxMessage})
	s.writer = NewWriter(&stallGuard{out: out, after: opts.WriteTimeout, stalled: s.outputStalled})
	return s
}

// Serve is [NewServer] and [Server.Serve] in one.
func Serve(ctx context.Context, in io.Reader, out io.Writer, handler Handler, opts Options) error {
	return NewServer(in, out, handler, opts).Serve(ctx)
}

// Serve runs until the input ends, the idle time is over, the parent died, the
// output is closed (all of these return nil), ctx ends (its cause is returned)
// or a fault. At the end of the input, and when idle, owed answers are still
// written within the drain timeout; otherwise handlers are cancelled at once.
func (s *Server) Serve(ctx context.Context) error {
	cwd, _ := os.Getwd()
	s.emit(EventStarted, slog.String("cwd", cwd), slog.Int64("idle_timeout_ms", s.opts.IdleTimeout.Milliseconds()))
	work, cancelWork := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelWork()
	watch, stopWatch := context.WithCancel(ctx)
	defer stopWatch()
	s.idle = StartIdleTimer(s.opts.IdleTimeout, s.opts.Busy, s.idleExpired)

	reading, watching := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(reading)
		s.over.end(s.read(work))
	}()
	go func() {
		defer close(watching)
		if s.opts.Watchdog.Wait(watch) && s.over.end(errParentExit) {
			s.emit(EventParentExit)
		}
	}()

	select {
	case <-s.over.done:
	case <-ctx.Done():
		s.over.end(context.Cause(ctx))
	}
	stopWatch()
	<-watching
	s.idle.Stop()
	err := s.shutDown(reading, cancelWork)
	s.emit(EventStopped)
	return err
}

// shutDown brings everything that Serve started to its end.
func (s *Server) shutDown(reading <-chan struct{}, cancelWork func()) error {
	cause := s.over.cause
	owed := cause == errInputEnd || cause == errIdle
	if !owed {
		s.takeNoMore()
		cancelWork()
	}
	s.closeInput(reading)
	s.takeNoMore()

	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.open.Wait()
	}()
	if owed && !waitFor(ended, s.fault.done, s.opts.DrainTimeout) && s.writing.Load() > 0 {
		s.outputStalled()
	}
	cancelWork()
	done := waitFor(ended, nil, s.opts.StopTimeout)
	if !done && s.writing.Load() > 0 {
		s.outputStalled()
		done = waitFor(ended, nil, closeGrace)
	}

	if fault := s.fault.reason(); fault != nil && owed {
		cause = fault
	}
	switch {
	case errors.Is(cause, ErrOutputClosed), cause == errParentExit:
		return nil
	case cause != errInputEnd && cause != errIdle:
		return cause
	case !done:
		return fmt.Errorf("handlers did not return within %v of the end of their contexts", s.opts.StopTimeout)
	}
	return nil
}

// read takes messages until the input ends and returns why it did.
func (s *Server) read(ctx context.Context) error {
	for s.waitForRoom() {
		m, err := s.reader.Next()
		var bad *mcp.MessageError
		switch {
		case err == nil:
			s.accept(ctx, m)
		case errors.As(err, &bad):
			s.refuse(bad)
		case err == io.EOF || s.closing.Load():
			return errInputEnd
		default:
			return fmt.Errorf("read input: %w", err)
		}
	}
	return errInputEnd
}

// accept starts the handler of one message.
func (s *Server) accept(ctx context.Context, m mcp.Message) {
	env, err := mcp.ParseEnvelope(m.Body())
	if err != nil {
		s.refuse(&mcp.MessageError{Mode: m.Mode, Seen: env, Err: err})
		return
	}
	s.mode.Store(uint32(m.Mode))
	s.spawn(len(m.Raw), func() func() {
		s.emit(EventRequest, slog.String("id", string(env.ID.Raw)), slog.String("method", env.Method))
		req := &Request{Envelope: env, Message: m}
		req.ctx, req.cancel = context.WithCancel(ctx)
		if s.opts.Preempt != nil {
			s.opts.Preempt(req)
		}
		return func() {
			defer req.cancel()
			s.handle(req)
		}
	})
}

// refuse answers a message that could not be used.
func (s *Server) refuse(bad *mcp.MessageError) {
	s.mode.Store(uint32(bad.Mode))
	answer := refusal(bad)
	if s.opts.OnParseError != nil {
		answer = s.opts.OnParseError(bad, answer)
	}
	if answer == nil {
		s.idle.Touch()
		return
	}
	s.spawn(0, func() func() {
		return func() {
			if err := s.answer(bad.Mode, bad.Seen.ID, &mcp.Response{Error: answer}); err != nil {
				s.failed(err)
			}
		}
	})
}

// refusal returns the default answer to a message that could not be used: a
// parse error, or an invalid request where its id is known. What answers
// something, or is surely a notification, is not answered.
func refusal(bad *mcp.MessageError) *mcp.Error {
	deep, long := errors.Is(bad, mcp.ErrTooDeep), errors.Is(bad, mcp.ErrTooLong)
	switch {
	case bad.Seen.IsResponse(), deep && bad.Seen.IsNotification():
		return nil
	case deep, long:
		return &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "Invalid Request: " + bad.Error()}
	}
	return &mcp.Error{Code: mcp.CodeParse, Message: "Parse error", Data: bad.Error()}
}

// handle runs the handler and writes its answer.
func (s *Server) handle(req *Request) {
	resp, err := s.handler(req.ctx, req)
	if err != nil {
		if req.ctx.Err() != nil && errors.Is(err, req.ctx.Err()) {
			return
		}
		resp = s.handlerFailed(req, err)
	}
	if resp == nil || req.IsNotification() {
		return
	}
	if err := s.answer(req.Message.Mode, req.ID, resp); err != nil {
		if resp = s.handlerFailed(req, err); resp == nil {
			return
		}
		if err := s.answer(req.Message.Mode, req.ID, resp); err != nil {
			s.failed(err)
		}
	}
}

// handlerFailed asks the hook what to do about an error; without a hook it ends
// the loop.
func (s *Server) handlerFailed(req *Request, err error) *mcp.Response {
	if s.opts.OnError == nil {
		s.failed(err)
		return nil
	}
	return s.opts.OnError(req, err)
}

// answer writes one response. It returns an error only if the response cannot
// be encoded.
func (s *Server) answer(mode mcp.Mode, id mcp.ID, resp *mcp.Response) error {
	body, err := mcp.EncodeResponse(id, resp)
	if err != nil {
		return err
	}
	s.addPending(len(body))
	defer s.addPending(-len(body))
	if s.write(mode, body) == nil {
		s.emit(EventResponse, slog.Bool("is_error", resp.Error != nil))
	}
	return nil
}

// Send writes a message of ours that answers nothing, in the framing of the
// client's latest message. It blocks while the client does not read.
func (s *Server) Send(body []byte) error {
	return s.write(mcp.Mode(s.mode.Load()), body)
}

// Notify sends a notification; nil params are left out.
func (s *Server) Notify(method string, params any) error {
	body, err := mcp.EncodeNotification(method, params)
	if err != nil {
		return err
	}
	return s.Send(body)
}
