//go:build unix

package app

import (
	"os"
	"syscall"
)

// ownedByRoot reports whether one of the directories is root's.
func ownedByRoot(dirs []string) bool {
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid == 0 {
				return true
			}
		}
	}
	return false
}
