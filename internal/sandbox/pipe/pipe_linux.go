// Package pipe makes pipes that carry much data between two processes.
package pipe

import (
	"os"

	"golang.org/x/sys/unix"
)

// New is os.Pipe with a buffer of size bytes where the system grants it: fewer
// switches between the two processes. The system's default serves otherwise.
func New(size int) (r, w *os.File, err error) {
	if r, w, err = os.Pipe(); err != nil {
		return nil, nil, err
	}
	// Not by Fd: that would make the reads uninterruptible.
	if raw, err := w.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, size) })
	}
	return r, w, nil
}
