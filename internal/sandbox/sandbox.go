package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"mcpagents/internal/sandbox/tunnel"
	"mcpagents/internal/sandbox/wire"
)

// Times of the conversation with sandbox-init.
const (
	// Heartbeat is how often the front end pings.
	Heartbeat = 10 * time.Second
	// DefaultGrace and DefaultLifeline stand in for a zero in a Spec.
	DefaultGrace    = 5 * time.Second
	DefaultLifeline = 60 * time.Second
	// slack is what an end may take beyond the grace.
	slack = 2 * time.Second
)

// LostError says that the sandbox is gone although nobody asked it to end.
type LostError struct {
	Cause error
	// Tail is the end of sandbox-init's own diagnostics.
	Tail string
}

func (e *LostError) Error() string {
	text := "the sandbox ended unexpectedly"
	if e.Cause != nil && !errors.Is(e.Cause, io.EOF) {
		text += ": " + e.Cause.Error()
	}
	if e.Tail != "" {
		text += ": " + e.Tail
	}
	return text
}

func (e *LostError) Unwrap() error { return e.Cause }

// RemoteError is an error frame of sandbox-init. Its text is at most 4 KiB.
type RemoteError struct{ Code, Text string }

func (e *RemoteError) Error() string { return e.Text }

// ErrClosed says that the sandbox was closed by us.
var ErrClosed = errors.New("the sandbox was closed")

// Sandbox is a running sandbox. Auxiliary commands (Run) come first, one after
// another, then the main one (Spawn). Close must be called, and ends everything.
type Sandbox struct {
	spec    Spec
	inst    Instance
	conn    *wire.Conn
	log     *slog.Logger
	welcome wire.Welcome

	heard   atomic.Int64 // nanoseconds of the monotonic clock at the last frame
	started time.Time
	stop    context.CancelFunc
	workers sync.WaitGroup
	ended   chan struct{} // the stream is over

	greeting chan wire.Welcome
	greeted  bool // used by the reader only

	mu         sync.Mutex
	err        error // why, once ended
	closed     bool  // by us: an end of the stream is no loss
	proc       *Process
	collection *collection // the one under way
	forward    *forward    // asked for, or nil
	changes    *changes

	tunnel *tunnel.Tunnel

	closing  sync.Once
	closeErr error
}

// collection is one Collect: the answers come in the order of its names.
type collection struct {
	names []string
	got   []wire.Collected
	done  chan struct{}
}

// Open makes a sandbox of spec and exchanges hellos with its init. The context
// bounds the opening.
func Open(ctx context.Context, rt Runtime, spec Spec, log *slog.Logger) (*Sandbox, error) {
	if spec.ID == "" {
		spec.ID = rand.Text()
	}
	if spec.Grace <= 0 {
		spec.Grace = DefaultGrace
	}
	if spec.Lifeline <= 0 {
		spec.Lifeline = DefaultLifeline
	}
	inst, err := rt.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	live, stop := context.WithCancel(context.Background())
	s := &Sandbox{spec: spec, inst: inst, conn: wire.NewConn(inst, inst), log: log, started: time.Now(), stop: stop,
		ended: make(chan struct{}), greeting: make(chan wire.Welcome, 1), changes: newChanges()}
	s.tunnel = tunnel.New(s.conn, wire.FirstFront, s.dialOut)
	s.workers.Add(2)
	go s.read()
	go s.heartbeat(live)
	if err := s.greet(ctx); err != nil {
		closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), spec.Grace+2*slack)
		defer cancel()
		return nil, errors.Join(err, s.Close(closeCtx))
	}
	return s, nil
}

func (s *Sandbox) greet(ctx context.Context) error {
	var probe []string
	if s.spec.WorkDir != "" {
		probe = append(probe, s.spec.WorkDir)
	}
	hello := wire.Hello{Magic: wire.Magic, Min: wire.Version, Max: wire.Version, Sandbox: s.spec.ID,
		Grace: s.spec.Grace, Lifeline: s.spec.Lifeline, FilesDir: s.spec.FilesDir, Probe: probe}
	if err := s.conn.SendJSON(wire.TypeHello, hello); err != nil {
		return fmt.Errorf("greet sandbox-init: %w", err)
	}
	select {
	case s.welcome = <-s.greeting:
		return nil
	case <-s.ended:
		return fmt.Errorf("greet sandbox-init: %w", s.Err())
	case <-ctx.Done():
		return fmt.Errorf("greet sandbox-init: %w", context.Cause(ctx))
	}
}

// ID is the runtime's name for the sandbox: a container's id, or a pid.
func (s *Sandbox) ID() string { return s.inst.ID() }

// Welcome is what sandbox-init said of itself.
func (s *Sandbox) Welcome() wire.Welcome { return s.welcome }

// Ended is closed when the stream to sandbox-init is over.
func (s *Sandbox) Ended() <-chan struct{} { return s.ended }

// Err is why the sandbox ended, or nil while it lives.
func (s *Sandbox) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// PutFile puts a login file into the private home, before the first command.
func (s *Sandbox) PutFile(f wire.File) error {
	payload, err := wire.EncodeFile(f)
	if err != nil {
		return err
	}
	return s.conn.Send(wire.Frame{Type: wire.TypeFile, Payload: payload})
}

// Collect reads login files back from the private home. What it returns is
// hostile. One collection is possible at a time, and a cancelled one is under
// way until its answers have come.
func (s *Sandbox) Collect(ctx context.Context, names ...string) ([]wire.Collected, error) {
	if len(names) == 0 {
		return nil, nil
	}
	c := &collection{names: names, done: make(chan struct{})}
	s.mu.Lock()
	if s.collection != nil {
		s.mu.Unlock()
		return nil, errors.New("collect login files: another collection is under way")
	}
	s.collection = c
	s.mu.Unlock()
	if err := s.conn.SendJSON(wire.TypeCollect, wire.Collect{Names: names}); err != nil {
		return nil, fmt.Errorf("collect login files: %w", err)
	}
	select {
	case <-c.done:
		return c.got, nil
	case <-s.ended:
		return nil, fmt.Errorf("collect login files: %w", s.Err())
	case <-ctx.Done():
		return nil, fmt.Errorf("collect login files: %w", context.Cause(ctx))
	}
}

// Close ends the sandbox: bye (TERM, grace, KILL inside), then its destruction,
// verified. It returns nil once nothing is left. The context bounds it; it
// should allow the grace and some seconds.
func (s *Sandbox) Close(ctx context.Context) error {
	s.closing.Do(func() {
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		_ = s.conn.Send(wire.Frame{Type: wire.TypeBye})
		timer := time.NewTimer(s.spec.Grace + slack)
		defer timer.Stop()
		select {
		case <-s.ended:
		case <-timer.C:
		case <-ctx.Done():
		}
		s.stop()
		s.tunnel.Close()
		s.closeErr = s.inst.Destroy(ctx)
		s.fail(ErrClosed)
		_ = s.inst.Close()
		_ = s.conn.Close()
		s.workers.Wait()
		s.changes.close()
	})
	return s.closeErr
}

// heartbeat pings, and gives a silent sandbox up after the lifeline's length:
// by then its init has ended the other side.
func (s *Sandbox) heartbeat(ctx context.Context) {
	defer s.workers.Done()
	beat := time.NewTicker(min(Heartbeat, s.spec.Lifeline/3))
	defer beat.Stop()
	for n := uint64(1); ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-s.ended:
			return
		case <-beat.C:
		}
		if silent := time.Since(s.started) - time.Duration(s.heard.Load()); silent > s.spec.Lifeline {
			s.fail(&LostError{Cause: fmt.Errorf("nothing arrived from it for %s", silent.Round(time.Second))})
			_ = s.inst.Close()
			return
		}
		_ = s.conn.Send(wire.Frame{Type: wire.TypePing, Payload: []byte{0, 0, 0, 0, 0, 0, 0, byte(n)}})
	}
}

// fail ends everything that waits. The first reason stays; what happens after
// our own bye is no loss.
func (s *Sandbox) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	if s.closed {
		err = ErrClosed
	}
	s.err = err
	if s.proc != nil {
		s.proc.fail(err)
	}
	close(s.ended)
}
