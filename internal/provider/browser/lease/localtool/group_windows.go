package localtool

import (
	"os/exec"
	"syscall"
)

func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// killGroup kills the process itself: its children end with their input.
func killGroup(cmd *exec.Cmd) bool { return cmd.Process.Kill() == nil }
