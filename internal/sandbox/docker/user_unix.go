//go:build unix

package docker

import (
	"fmt"
	"os"
	"syscall"
)

func selfIdentity() identity { return identity{uid: os.Geteuid(), gid: os.Getegid()} }

// workspaceOwner looks at the workspace; an unreadable one counts as our own,
// and its mount tells what is wrong with it.
func workspaceOwner(dir string) owner {
	st, err := os.Stat(dir)
	if err != nil {
		return owner{uid: os.Geteuid(), gid: os.Getegid()}
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return owner{uid: os.Geteuid(), gid: os.Getegid()}
	}
	return owner{uid: int(sys.Uid), gid: int(sys.Gid), groupWritable: st.Mode().Perm()&0o020 != 0}
}

// fileID tells a file from another that took its path.
func fileID(path string) (string, error) {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return "", &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino), nil
}
