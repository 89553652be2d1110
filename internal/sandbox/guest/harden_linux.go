package guest

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"unsafe"

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

// librarySignals are what Go leaves at their default, for C libraries. The
// kernel keeps defaults from a PID 1 only while its main thread does not block
// the signal: a command killed PID 1 with signal 32 now and then.
var librarySignals = []uintptr{32, 34}

// Handlers as the kernel knows them.
const (
	byDefault = 0
	ignored   = 1
)

// setLibrarySignals sets their handler. A command must not inherit that they
// are ignored.
func setLibrarySignals(handler uintptr) {
	action := [4]uintptr{handler} // the kernel's struct: handler, flags, restorer, mask
	for _, number := range librarySignals {
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, number, uintptr(unsafe.Pointer(&action)), 0, unsafe.Sizeof(action[3]), 0, 0)
	}
}
