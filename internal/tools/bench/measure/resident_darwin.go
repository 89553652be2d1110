package measure

import (
	"os"
	"syscall"
)

func maxResident(state *os.ProcessState) int64 {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return usage.Maxrss // in bytes here
}
