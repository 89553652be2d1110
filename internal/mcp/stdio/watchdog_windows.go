package stdio

import (
	"errors"
	"os"
	"syscall"
)

const (
	queryLimitedInformation = 0x1000
	invalidParameter        = syscall.Errno(87) // how OpenProcess says "no such process"
	stillActive             = 259
)

// probeProcess opens the process and reads its exit code.
func probeProcess(pid int) error {
	h, err := syscall.OpenProcess(queryLimitedInformation, false, uint32(pid))
	if errors.Is(err, invalidParameter) {
		return os.ErrProcessDone
	} else if err != nil {
		return err
	}
	defer syscall.CloseHandle(h)
	var code uint32
	if err := syscall.GetExitCodeProcess(h, &code); err != nil {
		return err
	}
	if code != stillActive {
		return os.ErrProcessDone
	}
	return nil
}
