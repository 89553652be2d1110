package keeper

import (
	"io/fs"
	"os/exec"
	"syscall"
)

// private is true: a user's temporary directory is the user's alone here.
func private(fs.FileInfo) bool { return true }

// detach takes a command out of the process group of whoever starts it.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
