package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// sandboxInit is the pid of the sandbox-init that started us. Nothing else is
// ever attacked: an orphan's parent is a process that has no part in the test.
func sandboxInit() (int, error) {
	pid := os.Getppid()
	cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err == nil && !bytes.Contains(cmdline, []byte("sandbox-init")) {
		err = fmt.Errorf("our parent is no sandbox-init: %q", cmdline)
	}
	return pid, err
}

// signalInit sends one signal to sandbox-init, or all 64 for 0. Outside a
// container KILL and STOP, which nothing can catch, are left out of all.
func signalInit(number int) error {
	pid, err := sandboxInit()
	if err != nil {
		return err
	}
	if number != 0 {
		return syscall.Kill(pid, syscall.Signal(number))
	}
	var errs []error
	for n := 1; n <= 64; n++ {
		if pid != 1 && (n == 9 || n == 19) {
			continue
		}
		errs = append(errs, syscall.Kill(pid, syscall.Signal(n)))
	}
	return errors.Join(errs...)
}

// limitInit lowers a limit of sandbox-init, which a process of the same user may.
func limitInit(name string, to uint64) error {
	resource, ok := map[string]int{"nofile": unix.RLIMIT_NOFILE, "nproc": unix.RLIMIT_NPROC, "as": unix.RLIMIT_AS, "fsize": unix.RLIMIT_FSIZE}[name]
	if !ok {
		return fmt.Errorf("unknown limit %q", name)
	}
	pid, err := sandboxInit()
	if err != nil {
		return err
	}
	return unix.Prlimit(pid, resource, &unix.Rlimit{Cur: to, Max: to}, nil)
}
