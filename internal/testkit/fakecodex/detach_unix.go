//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func dieBy(signal int) {
	err := syscall.Exec("/bin/sh", []string{"sh", "-c", fmt.Sprintf("kill -%d $$", signal)}, nil)
	fmt.Fprintln(os.Stderr, err)
}
