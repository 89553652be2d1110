//go:build !windows

package stdio

import "syscall"

// probeProcess sends the null signal, which only checks.
func probeProcess(pid int) error { return syscall.Kill(pid, 0) }
