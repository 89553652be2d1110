//go:build unix

package localtool

import (
	"os/exec"
	"syscall"
)

func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills what is left of the group and reports whether anything was.
func killGroup(cmd *exec.Cmd) bool { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) == nil }
