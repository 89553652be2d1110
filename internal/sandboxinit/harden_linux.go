package sandboxinit

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// oomScore is the descriptor of our own oom_score_adj: it can be opened only
// while the process is dumpable, and written afterwards.
var oomScore *os.File

// harden makes the process non-dumpable, before it has read anything: without
// it a command of the same user can read init's memory and environment, and
// write frames through /proc/1/fd/1.
func harden() error {
	oomScore, _ = os.OpenFile("/proc/self/oom_score_adj", os.O_RDWR, 0)
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("become non-dumpable: %w", err)
	}
	return nil
}

// becomeReaper makes orphaned descendants children of this process. PID 1 is
// that already.
func becomeReaper() error {
	if os.Getpid() == 1 {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a child subreaper: %w", err)
	}
	return nil
}

// oomVictim raises our own oom_score_adj, which a forked child inherits, and
// returns the function that lowers it again: when memory ends the kernel takes
// the command and not init.
func oomVictim() (restore func()) {
	if oomScore == nil {
		return func() {}
	}
	buf := make([]byte, 16)
	n, err := oomScore.ReadAt(buf, 0)
	if err != nil && n == 0 {
		return func() {}
	}
	own, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		return func() {}
	}
	_, _ = oomScore.WriteAt([]byte(strconv.Itoa(min(own+500, 1000))), 0)
	return func() { _, _ = oomScore.WriteAt([]byte(strconv.Itoa(own)), 0) }
}

// warmThreads makes the Go runtime create the threads that it will need. Under
// a full pids limit a new thread fails, and the runtime dies of that.
func warmThreads(n int) {
	var inside, done sync.WaitGroup
	inside.Add(n)
	done.Add(n)
	for range n {
		go func() {
			defer done.Done()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			inside.Done()
			inside.Wait()
		}()
	}
	done.Wait()
}
