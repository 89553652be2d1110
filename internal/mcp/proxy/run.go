package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"mcpagents/internal/sandbox/wire"
)

// Bounds of the wind-down.
const (
	// DrainTime is how long the end of a command's output is waited for after
	// the command, and how long the client may take to read what is queued.
	DrainTime = 2 * time.Second
	// CloseTime bounds the destruction of a command and its sandbox: a container
	// takes longer than a process.
	CloseTime = 30 * time.Second
)

// Process is a running command in a sandbox of its own.
type Process struct {
	Stdin  io.WriteCloser
	Stdout io.Reader
	Stderr io.Reader
	// Wait returns how it ended, or an error if its sandbox was lost. It ends
	// with its context.
	Wait func(context.Context) (wire.Exit, error)
	// Close destroys it with everything that it started and returns when that is
	// verified gone. It makes reads, writes and Wait return, and is called
	// exactly once.
	Close func(context.Context) error
}

// Run is one run of a command and the goroutines that read from it. Its fields
// and methods belong to the event loop of the bridge.
type Run struct {
	Input  *Input
	Number int // within the bridge, from 1

	Initialized  bool    // an initialize was sent to it
	Served       bool    // it has answered, so that its end is the bridge's end
	MidLine      bool    // a line of its stdout has begun and not ended
	StdoutClosed bool    // its end was seen
	StderrClosed bool    // its end was seen
	End          *Ending // nil until it was seen

	limited  bool // a call that waits has set a limit to its start
	process  Process
	stop     context.CancelFunc
	tasks    sync.WaitGroup
	splitter Splitter // of stdout
	pieces   chan Piece
	stderr   chan []byte
	ended    chan Ending
}

// Follow begins to read from a process that was just started. With stderr it
// cuts that stream into what Events tells of it; a false from yield ends it.
func Follow(p Process, number int, stderr func(r io.Reader, yield func([]byte) bool)) *Run {
	ctx, stop := context.WithCancel(context.Background())
	r := &Run{
		Input: NewInput(p.Stdin), Number: number, process: p, stop: stop,
		pieces: make(chan Piece), stderr: make(chan []byte), ended: make(chan Ending, 1),
	}
	r.tasks.Go(func() {
		defer close(r.pieces)
		// An error is the end of stdout as well: why is what Wait tells.
		_ = r.splitter.Split(p.Stdout, func(p Piece) bool { return Send(ctx, r.pieces, p) })
	})
	r.tasks.Go(func() {
		defer close(r.stderr)
		stderr(p.Stderr, func(b []byte) bool { return Send(ctx, r.stderr, b) })
	})
	r.tasks.Go(func() {
		exit, err := p.Wait(ctx)
		r.ended <- Ending{exit, err}
	})
	return r
}

// Events are what a run has to tell. A nil channel tells nothing now.
type Events struct {
	Stdout  <-chan Piece  // closed at its end
	Stderr  <-chan []byte // closed at its end
	Ended   <-chan Ending
	Written <-chan error // of the input, to be given to its Wrote
}

// Events returns what to wait for. While the client is behind, that does not
// include the output: the client must read first.
func (r *Run) Events(behind bool) Events {
	e := Events{Ended: r.ended, Written: r.Input.Results()}
	if !r.StdoutClosed && !behind {
		e.Stdout = r.pieces
	}
	if !r.StderrClosed {
		e.Stderr = r.stderr
	}
	return e
}

// Over reports whether the command and all of its output have ended.
func (r *Run) Over() bool { return r.End != nil && r.StdoutClosed && r.StderrClosed }

// Held returns what a command that is still there has written of a line, if
// that is a whole message which only lacks its LF.
func (r *Run) Held() (p Piece, ok bool) {
	if r.StdoutClosed {
		return p, false
	}
	held := r.splitter.Held()
	return Piece{Data: held, First: true, Cut: true}, json.Valid(held)
}

// Close destroys the command and waits for the goroutines of the run, both for
// CloseTime at most: a command that could not be destroyed may hold them.
func (r *Run) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), CloseTime)
	defer cancel()
	r.stop()
	err := r.process.Close(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Input.Wait()
		r.tasks.Wait()
	}()
	select {
	case <-done:
		return err
	case <-ctx.Done():
		return errors.Join(err, errors.New("its streams did not end"))
	}
}
