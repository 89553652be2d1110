//go:build unix

package workspace

import (
	"fmt"
	"os"
	"syscall"
)

const (
	openFlags    = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
	groupWritten = 0o020
)

// Owner returns the owner and the group of a file or directory, links
// followed, and whether its group may write to it.
func Owner(path string) (uid, gid int, groupWritable bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, false, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false, fmt.Errorf("owner of %s: the file system tells none", path)
	}
	return int(stat.Uid), int(stat.Gid), info.Mode().Perm()&groupWritten != 0, nil
}
