package stdio

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// DefaultWatchdogInterval is the usual time between two looks at the parent.
const DefaultWatchdogInterval = 30 * time.Second

// Watchdog looks at the parent process from time to time, for a parent that
// dies while something else holds the pipes open. The zero value is off.
type Watchdog struct {
	// Interval is the time between two looks; 0 or less turns the watchdog off.
	Interval time.Duration

	// PID is the process to look at; 0 means the parent at the time of [Watchdog.Wait].
	PID int

	// Probe reports on a process: nil if it lives. Only an error that wraps
	// syscall.ESRCH or os.ErrProcessDone counts as dead; "not permitted" and
	// every other doubt counts as alive. Nil means a probe by the system.
	Probe func(pid int) error

	// OnPoll, if set, is told the outcome of each look.
	OnPoll func(alive bool)
}

// Wait returns true when the parent has died and false when ctx ends first or
// the watchdog is off. Being handed to another parent decides nothing: under
// an init or a subreaper it happens to processes whose client is well.
func (w Watchdog) Wait(ctx context.Context) bool {
	pid, probe := w.PID, w.Probe
	if pid == 0 {
		pid = os.Getppid()
	}
	if probe == nil {
		probe = probeProcess
	}
	// In a container the parent is outside of the pid namespace and reads as
	// 0, which to the system means our own group and not a process.
	if w.Interval <= 0 || pid <= 0 {
		return false
	}
	ticker := time.NewTicker(w.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
		err := probe(pid)
		dead := errors.Is(err, syscall.ESRCH) || errors.Is(err, os.ErrProcessDone)
		if w.OnPoll != nil {
			w.OnPoll(!dead)
		}
		if dead {
			return true
		}
	}
}
