package guest

import (
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/containerd/console"

	"mcpagents/internal/sandbox/pipe"
	"mcpagents/internal/sandbox/wire"
)

// streamEnds are the descriptors between init and a command: three pipes, or
// one terminal.
type streamEnds struct {
	child  [3]*os.File
	parent [3]*os.File
}

// open makes the pipes, or the terminal.
func (c *command) open() (*streamEnds, error) {
	if c.spawn.PTY != nil {
		return c.openPTY()
	}
	var e streamEnds
	fail := func(err error) (*streamEnds, error) {
		e.closeChild()
		e.closeParent()
		return nil, err
	}
	var err error
	if c.spawn.Stdin {
		e.child[0], e.parent[0], err = os.Pipe()
	} else {
		e.child[0], err = os.Open(os.DevNull)
	}
	if err != nil {
		return fail(err)
	}
	for i := 1; i <= 2; i++ {
		if e.parent[i], e.child[i], err = pipe.New(wire.Window); err != nil {
			return fail(err)
		}
	}
	return &e, nil
}

func (c *command) openPTY() (*streamEnds, error) {
	term, name, err := console.NewPty()
	if err != nil {
		return nil, err
	}
	size := console.WinSize{Height: c.spawn.PTY.Rows, Width: c.spawn.PTY.Cols}
	if err := term.Resize(size); err != nil {
		return nil, errors.Join(err, term.Close())
	}
	// It is the command's controlling terminal and must not become ours, or an
	// unprivileged command could not take it.
	tty, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, errors.Join(err, term.Close())
	}
	c.terminal = term
	return &streamEnds{child: [3]*os.File{tty, tty, tty}}, nil
}

// childFDs are the command's descriptors 0 to 2, in blocking mode as programs
// expect them.
func (e *streamEnds) childFDs() []uintptr {
	fds := make([]uintptr, 3)
	for i, f := range e.child {
		fds[i] = f.Fd()
	}
	return fds
}

func (e *streamEnds) closeChild() { closeFiles(e.child) }

func (e *streamEnds) closeParent() { closeFiles(e.parent) }

func closeFiles(files [3]*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close() // a terminal is there three times
		}
	}
}

// pump starts the goroutines that carry the command's streams; finish waits for
// them.
func (c *command) pump(e *streamEnds) {
	if c.terminal != nil {
		c.pumps.Add(2)
		go c.pumpIn(c.terminal, nil)
		go func() {
			defer c.pumps.Done()
			defer c.terminal.Close()
			c.pumpOut(c.terminal, c.stdout)
		}()
		return
	}
	if in := e.parent[0]; in != nil {
		c.pumps.Add(1)
		go c.pumpIn(in, in)
	} else {
		c.stdin.Discard()
	}
	for i, box := range map[int]*wire.Outbox{1: c.stdout, 2: c.stderr} {
		c.pumps.Add(1)
		go func() {
			defer c.pumps.Done()
			defer e.parent[i].Close()
			c.pumpOut(e.parent[i], box)
		}()
	}
}

// pumpIn carries what arrives to the command's stdin. A command that closed
// its stdin gets the rest thrown away, as a pipe would.
func (c *command) pumpIn(to io.Writer, end io.Closer) {
	defer c.pumps.Done()
	_, err := io.Copy(onlyWriter{to}, onlyReader{c.stdin})
	if end != nil {
		_ = end.Close()
	}
	if err != nil {
		c.stdin.Discard()
	}
}

// pumpOut carries the command's output until every writer of the pipe is gone.
// When the session no longer takes it, it is still read: a command must not
// hang on a full pipe while it gets its grace.
func (c *command) pumpOut(from io.Reader, box *wire.Outbox) {
	buf := make([]byte, wire.MaxData)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			_, _ = box.Write(buf[:n])
		}
		if err != nil { // EOF; EIO on a terminal whose last writer went
			_ = box.Close()
			return
		}
	}
}

type onlyWriter struct{ io.Writer }

type onlyReader struct{ io.Reader }
