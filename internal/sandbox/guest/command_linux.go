package guest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/containerd/console"

	"mcpagents/internal/sandbox/wire"
)

// warmed is how many threads are made before a command starts.
const warmed = 8

// command is one spawned command and its streams.
type command struct {
	spawn wire.Spawn
	hello wire.Hello
	conn  *wire.Conn
	procs *processes

	pid      int
	status   <-chan syscall.WaitStatus
	stdin    *wire.Inbox
	stdout   *wire.Outbox
	stderr   *wire.Outbox
	terminal console.Console // of a pty, else nil
	pumps    sync.WaitGroup

	killsBefore int64
	lifetime    *time.Timer
	timedOut    atomic.Bool
	stopped     chan struct{} // closed once the end of the lifetime was seen to
	finished    chan struct{}
}

func newCommand(conn *wire.Conn, procs *processes, sp wire.Spawn, h wire.Hello) *command {
	return &command{spawn: sp, hello: h, conn: conn, procs: procs, finished: make(chan struct{}), stopped: make(chan struct{}),
		stdin:  wire.NewInbox(conn, wire.Stdin),
		stdout: wire.NewOutbox(conn, wire.Stdout),
		stderr: wire.NewOutbox(conn, wire.Stderr)}
}

// start forks the command and reports that. When it cannot, the exit to report
// is returned.
func (c *command) start() (wire.Exit, bool) {
	path, code, err := lookPath(c.spawn)
	if err != nil {
		return spawnFailed(code, err), false
	}
	ends, err := c.open()
	if err != nil {
		return spawnFailed(126, err), false
	}
	defer ends.closeChild()
	warmThreads(warmed)
	c.killsBefore = memoryKills()
	attr := &syscall.ProcAttr{Dir: c.spawn.Dir, Env: markedEnv(c.spawn.Env, c.hello.Sandbox), Files: ends.childFDs(),
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: c.terminal != nil}}
	c.pid, c.status, err = c.procs.start(path, c.spawn.Argv, attr)
	if err != nil {
		ends.closeParent()
		return spawnFailed(126, fmt.Errorf("start %s: %w", filepath.Base(path), err)), false
	}
	_ = c.conn.SendJSON(wire.TypeStarted, wire.Started{PID: c.pid}) // ahead of its output
	c.pump(ends)
	if c.spawn.Lifetime > 0 {
		c.lifetime = time.AfterFunc(c.spawn.Lifetime, func() {
			defer close(c.stopped)
			c.timedOut.Store(true)
			c.procs.stop(c.hello.Grace)
		})
	}
	return wire.Exit{}, true
}

func spawnFailed(code int, err error) wire.Exit {
	return wire.Exit{Code: code, Reason: wire.ReasonSpawnFailed, Text: err.Error()}
}

// handle takes a frame for the running command.
func (c *command) handle(f wire.Frame) error {
	switch f.Type {
	case wire.TypeData, wire.TypeEOF:
		if f.Stream != wire.Stdin {
			return wire.Errorf("%s frame for stream %d", f.Type, f.Stream)
		}
		if f.Type == wire.TypeEOF {
			c.stdin.Close(io.EOF)
			return nil
		}
		return c.stdin.Put(f.Payload)
	case wire.TypeCredit:
		n, err := wire.Uint32(f)
		if err != nil {
			return err
		}
		switch f.Stream {
		case wire.Stdout:
			return c.stdout.Grant(n)
		case wire.Stderr:
			return c.stderr.Grant(n)
		}
		return wire.Errorf("credit for stream %d", f.Stream)
	case wire.TypeSignal:
		return c.signal(f)
	default:
		return c.resize(f)
	}
}

func (c *command) signal(f wire.Frame) error {
	var sig wire.Signal
	if err := wire.Unmarshal(f, &sig); err != nil {
		return err
	}
	if sig.Number < 1 || sig.Number > 64 {
		return wire.Errorf("signal %d", sig.Number)
	}
	if sig.All {
		c.procs.signalAll(syscall.Signal(sig.Number))
		return nil
	}
	if err := c.procs.signalGroup(c.pid, syscall.Signal(sig.Number)); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal the command: %w", err)
	}
	return nil
}

func (c *command) resize(f wire.Frame) error {
	var size wire.Resize
	if err := wire.Unmarshal(f, &size); err != nil {
		return err
	}
	if c.terminal != nil { // it may be closed by now, which is nobody's fault
		_ = c.terminal.Resize(console.WinSize{Height: size.Rows, Width: size.Cols})
	}
	return nil
}

// finish waits for the command's end, kills what it left, lets its output
// drain, and reports the exit.
func (c *command) finish(report func(wire.Exit)) {
	defer close(c.finished)
	status := <-c.status
	timedOut := c.timedOut.Load()
	c.procs.killAll()
	if c.lifetime != nil && !c.lifetime.Stop() {
		<-c.stopped // or it would stop the next command
	}
	c.stdin.Ended()
	c.stdin.Close(io.ErrClosedPipe)
	c.pumps.Wait()
	exit := wire.Exit{Code: status.ExitStatus(), Reason: wire.ReasonExit,
		Bytes: [3]int64{c.stdin.Total(), c.stdout.Total(), c.stderr.Total()}}
	if status.Signaled() {
		exit.Signal = int(status.Signal())
		exit.Code = 128 + exit.Signal
		exit.Reason = wire.ReasonSignal
	}
	switch {
	case timedOut:
		exit.Reason = wire.ReasonLifetime
	case exit.Code != 0 && c.procs.pidOne && memoryKills() > c.killsBefore:
		exit.Reason = wire.ReasonMemory
	}
	report(exit)
}

// abandon lets the streams go: nobody takes what still comes.
func (c *command) abandon() {
	c.stdin.Close(io.ErrClosedPipe)
	c.stdout.Fail(io.ErrClosedPipe)
	c.stderr.Fail(io.ErrClosedPipe)
}

// lookPath finds the command's file with the PATH and directory it will have.
func lookPath(sp wire.Spawn) (path string, code int, err error) {
	if st, err := os.Stat(sp.Dir); err != nil || !st.IsDir() {
		return "", 126, fmt.Errorf("working directory does not exist in the sandbox: %s", sp.Dir)
	}
	name := sp.Argv[0]
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(sp.Dir, name)
		}
		if _, err := os.Stat(name); err != nil {
			return "", 127, fmt.Errorf("command not found: %s", sp.Argv[0])
		}
		return name, 0, nil
	}
	var search string
	for _, kv := range sp.Env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = v
		}
	}
	for _, dir := range filepath.SplitList(search) {
		p := filepath.Join(dir, name)
		if st, err := os.Stat(p); err == nil && !st.IsDir() && st.Mode()&0o111 != 0 && filepath.IsAbs(p) {
			return p, 0, nil
		}
	}
	return "", 127, fmt.Errorf("command not found on the sandbox's PATH: %s", name)
}
