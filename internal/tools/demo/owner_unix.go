//go:build unix

package demo

import (
	"fmt"
	"os"
	"syscall"
)

func ownerOf(path string) (int, error) {
	st, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, fmt.Errorf("%s: the system does not tell the owner", path)
	}
	return int(sys.Uid), nil
}
