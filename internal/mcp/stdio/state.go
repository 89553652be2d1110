package stdio

import (
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"mcpagents/internal/mcp"
)

// messageCost is added to the bytes of each open message, so that the bound on
// bytes bounds goroutines as well.
const messageCost = 1 << 10

// spawn counts one message as open and runs what start returns on a goroutine.
// start itself runs at once, so that its effects keep the order of arrival. A
// closed server takes no message.
func (s *Server) spawn(size int, start func() func()) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.open.Add(1)
	s.mu.Unlock()
	s.addPending(size + messageCost)
	s.idle.Begin()
	run := start()
	go func() {
		defer s.open.Done()
		defer s.idle.End()
		defer s.addPending(-size - messageCost)
		run()
	}()
}

func (s *Server) addPending(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending += n
	if n < 0 {
		s.room.Broadcast()
	}
}

// waitForRoom blocks while too much is pending. It returns false when no
// message is taken any more.
func (s *Server) waitForRoom() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.pending > s.opts.MaxPending && !s.closed {
		s.room.Wait()
	}
	return !s.closed
}

func (s *Server) takeNoMore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.room.Broadcast()
}

// write puts one message on the output. Its first error ends the loop.
func (s *Server) write(mode mcp.Mode, body []byte) error {
	s.writing.Add(1)
	defer s.writing.Add(-1)
	err := s.writer.Send(mode, body)
	if err != nil {
		s.failed(err)
	}
	return err
}

// failed ends the loop by a fault. A closed output is one only to the loop.
func (s *Server) failed(err error) {
	if s.fault.end(err) && errors.Is(err, ErrOutputClosed) {
		s.emit(EventOutputError, slog.String("error", err.Error()))
	}
	s.over.end(err)
}

// outputStalled gives up on an output that takes nothing, and closes it so that
// the waiting writes return.
func (s *Server) outputStalled() {
	s.failed(ErrOutputStalled)
	if c, ok := s.out.(io.Closer); ok {
		go c.Close() // may itself wait for the write
	}
}

func (s *Server) idleExpired() {
	s.emit(EventIdleTimeout)
	if s.opts.OnIdle != nil {
		s.opts.OnIdle()
	}
	s.over.end(errIdle)
}

// closeInput makes a waiting read return, which a silent client never would,
// and waits for the reading goroutine. What it still read is handled.
func (s *Server) closeInput(reading <-chan struct{}) {
	s.closing.Store(true)
	c, ok := s.in.(io.Closer)
	select {
	case <-reading:
		return
	default:
		if !ok {
			return
		}
	}
	go c.Close() // may itself wait for the read
	waitFor(reading, nil, closeGrace)
}

func (s *Server) emit(name string, fields ...slog.Attr) {
	if s.opts.OnEvent == nil {
		return
	}
	s.events.Lock()
	defer s.events.Unlock()
	if s.stopped {
		return // a sender of ours that outlives the loop
	}
	s.stopped = name == EventStopped
	s.opts.OnEvent(name, fields...)
}

// ending is a reason that is set once and can be waited for.
type ending struct {
	once  sync.Once
	cause error // read after done
	done  chan struct{}
}

// end reports whether this call was the first, whose cause counts.
func (e *ending) end(cause error) (first bool) {
	e.once.Do(func() {
		e.cause, first = cause, true
		close(e.done)
	})
	return first
}

// reason returns the cause, or nil before the end.
func (e *ending) reason() error {
	select {
	case <-e.done:
		return e.cause
	default:
		return nil
	}
}

// waitFor reports whether done came before stop and before the time was over.
func waitFor(done, stop <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-stop:
	case <-timer.C:
	}
	return false
}

// stallGuard reports a write that takes longer than after, if that is set.
type stallGuard struct {
	out     io.Writer
	after   time.Duration
	stalled func()
}

func (g *stallGuard) Write(p []byte) (int, error) {
	if g.after > 0 {
		timer := time.AfterFunc(g.after, g.stalled)
		defer timer.Stop()
	}
	return g.out.Write(p)
}
