//go:build unix

package app

import (
	"os"

	"golang.org/x/sys/unix"
)

// isTerminal asks for what only terminals have, a window's size. It does not use
// f.Fd, which would make a file blocking that its opener made non-blocking.
func isTerminal(f *os.File) bool {
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	terminal := false
	err = raw.Control(func(fd uintptr) {
		_, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ)
		terminal = err == nil
	})
	return err == nil && terminal
}
