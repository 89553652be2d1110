// Package terminal connects the user's terminal, or pipes, to a command in a
// sandbox.
package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/containerd/console"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/wire"
)

// stopTime bounds the end of a command whose user has left.
const stopTime = 15 * time.Second

// Streams are the user's.
type Streams struct{ In, Out, Err *os.File }

// Standard are those of this process.
func Standard() Streams { return Streams{os.Stdin, os.Stdout, os.Stderr} }

// Size is the size of the user's terminal, which the command's is to have; nil
// when input and output are not both a terminal, and then the command gets pipes.
func (s Streams) Size() *wire.Resize {
	in, err := console.ConsoleFromFile(s.In)
	if err != nil {
		return nil
	}
	if _, err := console.ConsoleFromFile(s.Out); err != nil {
		return nil
	}
	size, err := in.Size()
	if err != nil {
		return nil
	}
	return &wire.Resize{Rows: size.Height, Cols: size.Width}
}

// Attach connects a command's streams to the user's until the command has ended,
// and returns its exit status. pty says that the command has a terminal: then
// the user's passes every key on, and is as it was when Attach returns. When the
// context ends, so does the command.
func Attach(ctx context.Context, p *sandbox.Process, s Streams, pty bool) (status int, err error) {
	if pty {
		restore, err := raw(s.In, p)
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, restore()) }()
	}
	// A read of the user's input cannot be ended; it ends with this process, of which this command is the work.
	go func() {
		_, _ = io.Copy(p.Stdin(), s.In)
		_ = p.Stdin().Close()
	}()
	var output sync.WaitGroup
	output.Go(func() { _, _ = io.Copy(s.Out, p.Stdout()) })
	output.Go(func() { _, _ = io.Copy(s.Err, p.Stderr()) })
	exit, err := p.Wait(ctx)
	if err != nil && ctx.Err() != nil {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer cancel()
		_, stopErr := p.Stop(stopping)
		err = errors.Join(err, stopErr)
	}
	output.Wait()
	if err != nil {
		return 0, err
	}
	if exit.Reason != wire.ReasonExit && exit.Reason != wire.ReasonSignal {
		return exit.Code, fmt.Errorf("the command was ended: %s %s", exit.Reason, exit.Text)
	}
	return exit.Code, nil
}

// raw makes the user's terminal pass every key on, and its size with each
// change. The result undoes that.
func raw(in *os.File, p *sandbox.Process) (restore func() error, err error) {
	c, err := console.ConsoleFromFile(in)
	if err != nil {
		return nil, fmt.Errorf("use the terminal: %w", err)
	}
	if err := c.SetRaw(); err != nil {
		return nil, fmt.Errorf("use the terminal: %w", err)
	}
	stop := onResize(func() {
		if size, err := c.Size(); err == nil {
			_ = p.Resize(wire.Resize{Rows: size.Height, Cols: size.Width})
		}
	})
	return func() error {
		stop()
		return c.Reset()
	}, nil
}
