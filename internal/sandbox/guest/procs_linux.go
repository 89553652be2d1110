package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// processes is the table of what runs below init. One goroutine (reap) waits
// for every child; commands are forked under the table's lock, since the
// reaper may see a child's end before the fork has returned.
type processes struct {
	mu      sync.Mutex
	watched map[int]chan syscall.WaitStatus
	empty   chan struct{} // closed while no child is left, replaced by a fork
	pidOne  bool
}

func newProcesses() *processes {
	p := &processes{watched: map[int]chan syscall.WaitStatus{}, empty: make(chan struct{}), pidOne: os.Getpid() == 1}
	close(p.empty)
	return p
}

// start forks a command. Its wait status is sent on the returned channel.
func (p *processes) start(path string, argv []string, attr *syscall.ProcAttr) (int, <-chan syscall.WaitStatus, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	restore := oomVictim()
	defer restore()
	setLibrarySignals(byDefault) // for the fork
	defer setLibrarySignals(ignored)
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		return 0, nil, err
	}
	status := make(chan syscall.WaitStatus, 1)
	p.watched[pid] = status
	if isClosed(p.empty) {
		p.empty = make(chan struct{})
	}
	return pid, status, nil
}

// reap waits for children until ctx ends. SIGCHLDs merge, and a command may
// send its own, so each one means: take all there are.
func (p *processes) reap(ctx context.Context) {
	chld := make(chan os.Signal, 1)
	signal.Notify(chld, syscall.SIGCHLD)
	defer signal.Stop(chld)
	beat := time.NewTicker(tick)
	defer beat.Stop()
	for {
		p.reapAll()
		select {
		case <-ctx.Done():
			return
		case <-chld:
		case <-beat.C:
		}
	}
}

func (p *processes) reapAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // ECHILD: nothing runs below init
			if !isClosed(p.empty) {
				close(p.empty)
			}
			return
		case pid == 0:
			return
		default:
			if c, ok := p.watched[pid]; ok {
				delete(p.watched, pid)
				c <- status
			}
		}
	}
}

// signalGroup signals the process group of a command that was not reaped yet.
func (p *processes) signalGroup(pid int, sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.watched[pid]; !ok {
		return nil
	}
	return syscall.Kill(-pid, sig)
}

// signalAll signals everything below init.
func (p *processes) signalAll(sig syscall.Signal) {
	if p.pidOne {
		_ = syscall.Kill(-1, sig) // everything but PID 1 itself
		return
	}
	below := descendants(os.Getpid())
	for _, d := range below {
		d.signal(sig)
	}
	if len(below) == 0 {
		p.signalWatched(sig)
	}
}

// signalWatched signals the groups of the commands, which takes no descriptor.
func (p *processes) signalWatched(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for pid := range p.watched {
		_ = syscall.Kill(-pid, sig)
	}
}

// gone is closed when no child, and so no descendant, is left.
func (p *processes) gone() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.empty
}

// maxUnseen is how often killAll looks when it sees none of what is left, as
// when a command has taken its descriptors away. A zombie is not seen either,
// but gone at the next look. Then init ends: what is left carries its marker,
// by which the front end or the next start finds it, once init is dead.
const maxUnseen = 10

// killAll kills everything below init and returns when it was reaped. From PID
// 1 one kill(-1) is complete. Elsewhere everything is stopped until nothing new
// turns up, so that nothing can fork away, and then killed. A process inside an
// uninterruptible call (state D) dies when the kernel lets it, and this waits
// for it: the front end does not, and destroys the sandbox from outside.
func (p *processes) killAll() {
	for unseen := 0; ; {
		if p.pidOne {
			p.signalAll(unix.SIGKILL)
		} else if killTree(os.Getpid()) > 0 {
			unseen = 0
		} else if p.signalWatched(unix.SIGKILL); unseen == maxUnseen {
			fmt.Fprintln(os.Stderr, "sandbox-init: cannot see the processes that are left: a command has lowered our limits")
			os.Exit(1)
		} else {
			unseen++
		}
		select {
		case <-p.gone():
			return
		case <-time.After(20 * time.Millisecond):
			p.reapAll()
		}
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
