package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"time"

	"mcpagents/internal/sandbox/wire"
)

// Command is a command to start in a sandbox.
type Command struct {
	Argv []string
	Env  []string
	Dir  string
	// Stdin gives the command a pipe; otherwise its stdin is at its end.
	Stdin bool
	// PTY gives the command a terminal of this size instead of pipes.
	PTY *wire.Resize
	// Lifetime ends the command with TERM, grace and KILL; 0 means none.
	Lifetime time.Duration
	// Watch names login files; Changed is called with the latest content of
	// each that changed, from one goroutine. The content is hostile.
	Watch   []string
	Changed func(wire.Collected)
}

// SpawnError says that a command could not be started in the sandbox.
type SpawnError struct {
	Code int // 126 not executable, 127 not found
	Text string
}

func (e *SpawnError) Error() string { return e.Text }

// Denied says that the kernel refused the sandbox's user something, as it does
// for a directory that only others may enter.
func (e *SpawnError) Denied() bool { return strings.Contains(e.Text, "permission denied") }

// Process is a command in a sandbox. Output that nobody reads holds the command
// at 256 KiB a stream; Stop, or the sandbox's Close, ends it all the same.
type Process struct {
	box    *Sandbox
	pid    int
	stdin  *wire.Outbox
	stdout *wire.Inbox
	stderr *wire.Inbox

	started chan struct{}
	done    chan struct{}
	once    sync.Once
	exit    wire.Exit
	err     error
}

// Spawn starts the main command. When the context ends first, the command may
// still start: Close ends it.
func (s *Sandbox) Spawn(ctx context.Context, c Command) (*Process, error) {
	return s.spawn(ctx, c, true)
}

// Start starts an auxiliary command and returns while it runs, for a sandbox
// whose program may be started again: with its end everything else in the
// sandbox is killed as well, and the next command may follow. One command runs at
// a time.
func (s *Sandbox) Start(ctx context.Context, c Command) (*Process, error) {
	return s.spawn(ctx, c, false)
}

// Output is what an auxiliary command left.
type Output struct {
	Stdout, Stderr []byte // the first 64 KiB of each
	Exit           wire.Exit
}

// Run runs an auxiliary command to its end.
func (s *Sandbox) Run(ctx context.Context, c Command) (Output, error) {
	p, err := s.spawn(ctx, c, false)
	if err != nil {
		return Output{}, err
	}
	var out Output
	var readers sync.WaitGroup
	for r, to := range map[*wire.Inbox]*[]byte{p.stdout: &out.Stdout, p.stderr: &out.Stderr} {
		readers.Go(func() {
			var first bytes.Buffer
			_, _ = io.Copy(&first, io.LimitReader(r, wire.MaxData))
			r.Discard()
			*to = first.Bytes()
		})
	}
	out.Exit, err = p.Wait(ctx)
	if err != nil {
		_ = p.Signal(syscall.SIGKILL, true)
		p.Discard()
		p.stdout.Close(err)
		p.stderr.Close(err)
	}
	readers.Wait()
	return out, err
}

func (s *Sandbox) spawn(ctx context.Context, c Command, isMain bool) (*Process, error) {
	p := &Process{box: s, started: make(chan struct{}), done: make(chan struct{}),
		stdin:  wire.NewOutbox(s.conn, wire.Stdin),
		stdout: wire.NewInbox(s.conn, wire.Stdout),
		stderr: wire.NewInbox(s.conn, wire.Stderr)}
	if len(c.Argv) == 0 {
		return nil, errors.New("start a command in the sandbox: its argv is empty")
	}
	if err := s.setProcess(p); err != nil {
		return nil, err
	}
	s.changes.call(c.Changed)
	sp := wire.Spawn{Argv: c.Argv, Env: c.Env, Dir: c.Dir, Stdin: c.Stdin, Main: isMain, PTY: c.PTY,
		Lifetime: c.Lifetime, Watch: c.Watch}
	if err := s.conn.SendJSON(wire.TypeSpawn, sp); err != nil {
		s.clearProcess() // it was never sent
		return nil, fmt.Errorf("start %s in the sandbox: %w", c.Argv[0], err)
	}
	select {
	case <-p.started:
		return p, nil
	case <-p.done:
	case <-ctx.Done():
		p.Discard()
		return nil, fmt.Errorf("start %s in the sandbox: %w", c.Argv[0], context.Cause(ctx))
	}
	if p.err == nil && p.exit.Reason == wire.ReasonSpawnFailed {
		p.err = &SpawnError{Code: p.exit.Code, Text: cut(p.exit.Text)}
	}
	if p.err == nil { // started and ended before we looked
		return p, nil
	}
	return nil, fmt.Errorf("start %s in the sandbox: %w", c.Argv[0], p.err)
}

// setProcess makes p the command that runs.
func (s *Sandbox) setProcess(p *Process) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return s.err
	case s.proc != nil:
		return errors.New("another command runs in the sandbox")
	}
	s.proc = p
	return nil
}

func (s *Sandbox) clearProcess() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proc = nil
}

// PID is the command's pid inside the sandbox.
func (p *Process) PID() int { return p.pid }

// Stdin is the command's input. Its Close is the end of input.
func (p *Process) Stdin() io.WriteCloser { return p.stdin }

// Stdout is the command's output.
func (p *Process) Stdout() io.Reader { return p.stdout }

// Stderr is the command's error output.
func (p *Process) Stderr() io.Reader { return p.stderr }

// Discard gives the output up: the command is not held by it any more.
func (p *Process) Discard() {
	p.stdout.Discard()
	p.stderr.Discard()
}

// Signal signals the command's process group, or everything in the sandbox.
func (p *Process) Signal(sig syscall.Signal, all bool) error {
	return p.box.conn.SendJSON(wire.TypeSignal, wire.Signal{Number: int(sig), All: all})
}

// Resize changes the size of the command's terminal.
func (p *Process) Resize(size wire.Resize) error { return p.box.conn.SendJSON(wire.TypeResize, size) }

// Done is closed when the command has ended and its output has arrived, or the
// sandbox is gone.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait returns the exit. The error is a *LostError when the sandbox went away
// first, or the context's.
func (p *Process) Wait(ctx context.Context) (wire.Exit, error) {
	select {
	case <-p.done:
		return p.exit, p.err
	case <-ctx.Done():
		return wire.Exit{}, context.Cause(ctx)
	}
}

// Stop gives the output up and ends the command: TERM to its group, the grace,
// KILL to everything in the sandbox.
func (p *Process) Stop(ctx context.Context) (wire.Exit, error) {
	p.Discard()
	_ = p.Signal(syscall.SIGTERM, false)
	grace, cancel := context.WithTimeout(ctx, p.box.spec.Grace)
	defer cancel()
	if exit, err := p.Wait(grace); err == nil || grace.Err() == nil {
		return exit, err
	}
	_ = p.Signal(syscall.SIGKILL, true)
	last, cancel := context.WithTimeout(ctx, slack)
	defer cancel()
	return p.Wait(last)
}

func (p *Process) begun(pid int) error {
	if isClosed(p.started) {
		return wire.Errorf("a second started frame")
	}
	p.pid = pid
	close(p.started)
	return nil
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// end takes the exit. Streams that init did not end, ended with it.
func (p *Process) end(exit wire.Exit) {
	p.once.Do(func() {
		p.exit = exit
		p.stdout.Ended()
		p.stderr.Ended()
		p.stdout.Close(io.EOF)
		p.stderr.Close(io.EOF)
		p.stdin.Fail(io.ErrClosedPipe)
		close(p.done)
	})
}

func (p *Process) fail(err error) {
	p.once.Do(func() {
		p.err = err
		p.stdout.Close(err)
		p.stderr.Close(err)
		p.stdin.Fail(err)
		close(p.done)
	})
}
