package codex

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"mcpagents/internal/alarm"
	"mcpagents/internal/relay"
	"mcpagents/internal/wire"
)

// Child is a running codex mcp-server in a sandbox of its own.
type Child struct {
	Stdin  io.WriteCloser
	Stdout io.Reader
	Stderr io.Reader
	// Wait returns how Codex ended, or an error if the sandbox was lost. It
	// ends with its context.
	Wait func(context.Context) (wire.Exit, error)
	// Close destroys the sandbox and returns when it is verified gone and a
	// changed login is written back. It makes reads, writes and Wait return.
	// The bridge calls it exactly once.
	Close func(context.Context) error
	// Invalidate, if set, is called once when the login proved not valid, so
	// that nothing of it is written back.
	Invalidate func()
	// Version is Codex's own, such as 0.153.4; empty if it is not known.
	Version string
	// Agents says that this version has the setting agents.enabled.
	Agents bool
}

// Launcher starts a Codex. The context bounds the launch only, not the child; a
// Launcher returns soon after it ends.
type Launcher func(ctx context.Context) (*Child, error)

// LaunchError is a failed launch with a text for the caller of a tool: what is
// wrong and what to do about it.
type LaunchError struct {
	Text string
	Err  error // for the log; may be nil
}

func (e *LaunchError) Error() string {
	if e.Err == nil {
		return e.Text
	}
	return fmt.Sprintf("%s: %v", e.Text, e.Err)
}

func (e *LaunchError) Unwrap() error { return e.Err }

// remedy is the text of a launch error for the caller of a tool.
func remedy(err error) string {
	if launch, ok := errors.AsType[*LaunchError](err); ok {
		return launch.Text
	}
	return err.Error()
}

// tailSize is how much of Codex's stderr is kept, in bytes.
const tailSize = 4 << 10

// ending is how a child ended.
type ending struct {
	exit wire.Exit
	err  error // the sandbox was lost
}

// session is one child and the goroutines that read from it. The fields below
// the channels belong to the event loop.
type session struct {
	child  *Child
	number int // of the launch within the bridge, from 1
	input  *relay.Input
	stop   context.CancelFunc
	tasks  sync.WaitGroup

	pieces chan relay.Piece // closed at the end of stdout
	stderr chan []byte      // closed at the end of stderr
	ended  chan ending

	served      bool // it has answered, so that its end is the bridge's end
	initialized bool // an initialize was sent to it
	stdoutEnded bool
	stderrEnded bool
	splitter    relay.Splitter // of stdout
	midLine     bool           // a line of it has begun and not ended
	dropping    bool           // the native line at hand is not for the client
	streaming   *request       // the request that the native line at hand answers
	tail        []byte         // of stderr
	end         *ending
	readiness   *alarm.Alarm // by when it must have answered initialize
}

func newSession(child *Child, number int) *session {
	ctx, stop := context.WithCancel(context.Background())
	s := &session{
		child: child, number: number, stop: stop, input: relay.NewInput(child.Stdin),
		pieces: make(chan relay.Piece), stderr: make(chan []byte), ended: make(chan ending, 1),
	}
	s.tasks.Go(func() {
		defer close(s.pieces)
		// An error is the end of stdout as well: why is what Wait tells.
		_ = s.splitter.Split(child.Stdout, func(p relay.Piece) bool { return relay.Send(ctx, s.pieces, p) })
	})
	s.tasks.Go(func() {
		defer close(s.stderr)
		buf := make([]byte, 32<<10)
		for {
			n, err := child.Stderr.Read(buf)
			if n > 0 && !relay.Send(ctx, s.stderr, []byte(string(buf[:n]))) || err != nil {
				return
			}
		}
	})
	s.tasks.Go(func() {
		exit, err := child.Wait(ctx)
		s.ended <- ending{exit, err}
	})
	return s
}

// close destroys the child and waits for the session's goroutines, at most
// until ctx ends: a child that could not be destroyed may hold them.
func (s *session) close(ctx context.Context) error {
	s.stop()
	err := s.child.Close(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.input.Wait()
		s.tasks.Wait()
	}()
	select {
	case <-done:
		return err
	case <-ctx.Done():
		return errors.Join(err, errors.New("its streams did not end"))
	}
}

func (s *session) keepTail(chunk []byte) {
	s.tail = append(s.tail, chunk...)
	if n := len(s.tail) - tailSize; n > 0 {
		s.tail = append(s.tail[:0], s.tail[n:]...)
	}
}

// failure is why a session that ended before it served did so, as a launch error.
func (s *session) failure() error {
	tail := strings.TrimSpace(strings.ToValidUTF8(string(s.tail), "?"))
	if strings.Contains(tail, "stdin is not a terminal") {
		version := s.child.Version
		if version == "" {
			version = "of an unknown version"
		}
		return &LaunchError{Text: "the Codex CLI " + version + " has no mcp-server command: " +
			"use an image with Codex 0.153.4 or earlier (0.154.0 removed the command)"}
	}
	text := "Codex ended before it answered initialize (" + s.end.reason() + ")"
	if tail != "" {
		text += ": " + tail[strings.LastIndexByte(tail, '\n')+1:]
	}
	return &LaunchError{Text: text}
}
