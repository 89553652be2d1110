//go:build unix

package docker

import (
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
