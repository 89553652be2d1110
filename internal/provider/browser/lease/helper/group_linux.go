package helper

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the helper into a process group of its own, and lets it hear of
// our death as it hears of a timeout.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
