package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/pipe"
	"mcpagents/internal/sandbox/tail"
	"mcpagents/internal/sandbox/wire"
	"mcpagents/internal/version"
)

// slack is what the end of init may take beyond the grace.
const slack = 2 * time.Second

// Runtime makes sandboxes of processes.
type Runtime struct {
	init []string // the command line of sandbox-init

	mu    sync.Mutex
	homes map[homePlace]bool // for the sweep
}

// homePlace is where private homes are and how their names begin.
type homePlace struct{ root, prefix string }

// New returns the local runtime. Init is the command line of sandbox-init;
// empty means the subcommand of this binary.
func New(init ...string) (*Runtime, error) {
	if len(init) == 0 {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find our own binary, which is sandbox-init too: %w", err)
		}
		init = []string{self, "sandbox-init"}
	}
	return &Runtime{init: init, homes: map[homePlace]bool{}}, nil
}

// Start makes the private home and starts init in a session of its own, so that
// a terminal's signals do not reach it.
func (r *Runtime) Start(_ context.Context, spec sandbox.Spec) (sandbox.Instance, error) {
	home, err := makeHome(spec.HomeRoot, spec.HomePrefix)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.homes[homePlace{spec.HomeRoot, spec.HomePrefix}] = true
	r.mu.Unlock()
	i := &instance{id: spec.ID, home: home, grace: spec.Grace, dead: make(chan struct{})}
	if err := i.start(r.init, spec); err != nil {
		return nil, errors.Join(err, home.remove())
	}
	return i, nil
}

// instance is one local sandbox.
type instance struct {
	id    string
	home  *home
	grace time.Duration
	cmd   *exec.Cmd
	in    *os.File // to init
	out   *os.File // from init
	diag  tail.Buffer
	dead  chan struct{} // closed once init was waited for

	closing sync.Once
}

func (i *instance) start(init []string, spec sandbox.Spec) error {
	childIn, in, err := pipe.New(wire.Window)
	if err != nil {
		return fmt.Errorf("make a pipe to sandbox-init: %w", err)
	}
	out, childOut, err := pipe.New(2 * wire.Window)
	if err != nil {
		_, _ = childIn.Close(), in.Close()
		return fmt.Errorf("make a pipe from sandbox-init: %w", err)
	}
	args := append(init[1:len(init):len(init)], "-home", i.home.path, "-remove", "-build", version.Version)
	i.cmd = exec.Command(init[0], args...)
	i.cmd.Stdin, i.cmd.Stdout, i.cmd.Stderr = childIn, childOut, &i.diag
	i.cmd.ExtraFiles = []*os.File{i.home.lock} // descriptor 3: the lock lives as long as init
	i.cmd.Env = []string{"HOME=" + i.home.path}
	i.cmd.Dir = "/"
	i.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = i.cmd.Start()
	_, _ = childIn.Close(), childOut.Close()
	if err != nil {
		_, _ = in.Close(), out.Close()
		return fmt.Errorf("start sandbox-init (%s): %w", init[0], err)
	}
	_ = i.home.lock.Close()
	i.in, i.out = in, out
	go func() {
		defer close(i.dead)
		_ = i.cmd.Wait()
	}()
	return nil
}

func (i *instance) Read(p []byte) (int, error)  { return i.out.Read(p) }
func (i *instance) Write(p []byte) (int, error) { return i.in.Write(p) }
func (i *instance) ID() string                  { return strconv.Itoa(i.cmd.Process.Pid) }
func (i *instance) Diagnostics() string         { return i.diag.String() }

// Close ends the lifeline.
func (i *instance) Close() error {
	i.closing.Do(func() { _, _ = i.in.Close(), i.out.Close() })
	return nil
}

// Destroy ends the lifeline, waits for init, and kills what a killed init left.
func (i *instance) Destroy(ctx context.Context) error {
	_ = i.Close()
	_ = i.cmd.Process.Signal(syscall.SIGCONT) // an init that was stopped does not see the end
	timer := time.NewTimer(i.grace + slack)
	defer timer.Stop()
	select {
	case <-i.dead:
	case <-timer.C:
		_ = i.cmd.Process.Kill()
	case <-ctx.Done():
		_ = i.cmd.Process.Kill()
	}
	<-i.dead
	// The home goes even when the context ends before everything is verified: it holds a login.
	err := killMarked(ctx, func(m mark) bool { return m.sandbox == i.id })
	return errors.Join(err, i.home.remove())
}
