package browser

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"mcpagents/internal/lease"
	"mcpagents/internal/relay"
	"mcpagents/internal/wire"
)

const (
	// maxStderrLine is where a line of the downstream's stderr is cut for the log.
	maxStderrLine = 8 << 10
	// tailLines is how many of them are kept for the error that a caller gets
	// when the downstream ends before it has answered initialize.
	tailLines = 5
)

// ending is how a child ended.
type ending struct {
	exit wire.Exit
	err  error // its sandbox was lost
}

// session is one downstream and the goroutines that read from it. The fields
// below the channels belong to the event loop.
type session struct {
	child  *lease.Child
	number int // from 1
	input  *relay.Input
	stop   context.CancelFunc
	tasks  sync.WaitGroup

	pieces chan relay.Piece // closed at the end of stdout
	stderr chan []byte      // lines; closed at its end
	ended  chan ending

	served      bool // it has answered, so that its end is the bridge's end
	initialized bool // an initialize was sent to it
	stdoutEnded bool
	stderrEnded bool
	splitter    relay.Splitter // of stdout
	long        *longLine      // a line that is too long to hold
	tail        []string       // of stderr
	end         *ending
}

func newSession(child *lease.Child, number int) *session {
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
		readLines(child.Stderr, func(line []byte) bool { return relay.Send(ctx, s.stderr, line) })
	})
	s.tasks.Go(func() {
		exit, err := child.Wait(ctx)
		s.ended <- ending{exit, err}
	})
	return s
}

// readLines yields the lines of r, each cut at maxStderrLine.
func readLines(r io.Reader, yield func([]byte) bool) {
	lines := bufio.NewReaderSize(r, maxStderrLine)
	for cut := false; ; {
		line, more, err := lines.ReadLine()
		if err != nil {
			return
		}
		if !cut && !yield([]byte(string(line))) {
			return
		}
		cut = more
	}
}

// close kills the child and waits for the session's goroutines, at most until
// ctx ends.
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

// fromStderr logs a line of the downstream.
func (b *bridge) fromStderr(line []byte, ok bool) {
	s := b.session
	if !ok {
		s.stderr, s.stderrEnded = nil, true
		b.outputEnded()
		return
	}
	text := strings.TrimRight(strings.ToValidUTF8(string(line), "\ufffd"), " \t\r")
	if s.tail = append(s.tail, text); len(s.tail) > tailLines {
		s.tail = s.tail[1:]
	}
	b.log.Info("[chrome-devtools] " + text)
}
