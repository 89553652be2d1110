//go:build unix

package helper

import (
	"os/exec"
	"syscall"
)

// The group outlives its leader: signals reach what a helper left behind.

func terminateGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
