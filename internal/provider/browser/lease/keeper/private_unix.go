//go:build unix

package keeper

import (
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// private reports whether a directory is this user's alone: in a directory for
// all it could be somebody else's.
func private(info fs.FileInfo) bool {
	sys, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Getuid() && info.Mode().Perm() == 0o700
}

// detach gives a command a session of its own, so that it does not end with the
// group of whoever starts it.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
