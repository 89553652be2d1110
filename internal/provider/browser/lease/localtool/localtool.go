package localtool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"mcpagents/internal/provider/browser/lease"
	"mcpagents/internal/sandbox/wire"
)

// Downstream is a lease.Downstream of processes.
type Downstream struct {
	// Command is the operator's, empty to look for one.
	Command []string
	// Dir is where an installed one is looked for; empty means beside this program.
	Dir string
	// Env is the environment; nil means that of this process. NO_COLOR=1 is added.
	Env []string
	Log *slog.Logger // nil means slog.Default
}

// Port returns a port of 127.0.0.1 that was free a moment ago.
func (d *Downstream) Port(ctx context.Context) (int, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port of 127.0.0.1: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Start starts the program in a process group of its own, in the working
// directory of this process.
func (d *Downstream) Start(_ context.Context, args []string) (*lease.Child, error) {
	dir := d.Dir
	if dir == "" {
		dir = beside()
	}
	p := resolve(d.Command, dir)
	log := d.Log
	if log == nil {
		log = slog.Default()
	}
	if p.source == sourceNPX {
		log.Info("first startup may wait for npm to resolve " + pkg + "@latest")
	}
	child, err := d.start(p, args)
	if err != nil {
		return nil, fmt.Errorf("start chrome-devtools-mcp (%s): %w; install it beside mcp-agents (npm install chrome-devtools-mcp), "+
			"or name a command with --browser_command", p.source, err)
	}
	child.Source = p.source
	return child, nil
}

// beside is the directory of this program's file.
func beside() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return filepath.Dir(path)
}

func (d *Downstream) start(p program, args []string) (*lease.Child, error) {
	env := d.Env
	if env == nil {
		env = os.Environ()
	}
	cmd := exec.Command(p.argv[0], append(p.argv[1:len(p.argv):len(p.argv)], args...)...)
	cmd.Env = append(env[:len(env):len(env)], "NO_COLOR=1")
	ownGroup(cmd)
	c := &child{cmd: cmd, ended: make(chan struct{})}
	for _, make := range []func() error{c.stdin, c.stdout, c.stderr} {
		if err := make(); err != nil {
			c.closeAll()
			return nil, err
		}
	}
	err := cmd.Start()
	for _, f := range c.theirs {
		_ = f.Close()
	}
	if err != nil {
		c.closeOurs()
		return nil, err
	}
	go c.wait()
	return &lease.Child{Stdin: c.ours[0], Stdout: c.ours[1], Stderr: c.ours[2], Wait: c.Wait, Close: c.Close}, nil
}

// child is a running program. Its streams are pipes of our own, which do not
// end with the wait for the process: what it wrote last is still to be read.
type child struct {
	cmd    *exec.Cmd
	ours   []*os.File // ends of stdin, stdout and stderr
	theirs []*os.File
	ended  chan struct{} // closed once exit is set
	exit   wire.Exit
}

func (c *child) stdin() error {
	r, w, err := os.Pipe()
	if err == nil {
		c.cmd.Stdin = r
		c.ours, c.theirs = append(c.ours, w), append(c.theirs, r)
	}
	return err
}

func (c *child) stdout() error { return c.output(&c.cmd.Stdout) }
func (c *child) stderr() error { return c.output(&c.cmd.Stderr) }

func (c *child) output(to *io.Writer) error {
	r, w, err := os.Pipe()
	if err == nil {
		*to = w
		c.ours, c.theirs = append(c.ours, r), append(c.theirs, w)
	}
	return err
}

func (c *child) closeOurs() {
	for _, f := range c.ours {
		_ = f.Close()
	}
}

func (c *child) closeAll() {
	c.closeOurs()
	for _, f := range c.theirs {
		_ = f.Close()
	}
}

func (c *child) wait() {
	defer close(c.ended)
	_ = c.cmd.Wait() // the state says how it ended
	c.exit = exitOf(c.cmd.ProcessState)
}

// exitOf is how a process ended.
func exitOf(state *os.ProcessState) wire.Exit {
	exit := wire.Exit{Code: state.ExitCode(), Reason: wire.ReasonExit}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && runtime.GOOS != "windows" && status.Signaled() {
		exit.Signal = int(status.Signal())
		exit.Code = 128 + exit.Signal
	}
	return exit
}

// Wait returns how the program ended.
func (c *child) Wait(ctx context.Context) (wire.Exit, error) {
	select {
	case <-c.ended:
		return c.exit, nil
	case <-ctx.Done():
		return wire.Exit{}, ctx.Err()
	}
}

// Close kills the group. A process of it that is between two system calls dies
// a moment later than its leader, so the group is looked at until it is empty.
func (c *child) Close(ctx context.Context) error {
	defer c.closeOurs()
	killGroup(c.cmd)
	select {
	case <-c.ended:
	case <-ctx.Done():
		return fmt.Errorf("chrome-devtools-mcp was killed and has not ended: %w", ctx.Err())
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for killGroup(c.cmd) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.New("processes of chrome-devtools-mcp were killed and have not ended")
		}
	}
	return nil
}
