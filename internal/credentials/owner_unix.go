//go:build unix

package credentials

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives f, which we just created, the owner of old. Only root can end up with
// another: a front end in a container runs as root over a user's directory, and a login that
// turned root's would lock that user out.
func keepOwner(f *os.File, old fs.FileInfo) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	is, ok := info.Sys().(*syscall.Stat_t)
	want, ok2 := old.Sys().(*syscall.Stat_t)
	if os.Geteuid() != 0 || !ok || !ok2 || is.Uid == want.Uid && is.Gid == want.Gid {
		return nil
	}
	return f.Chown(int(want.Uid), int(want.Gid))
}

// syncDirectory makes a rename durable. Best effort: the file is in place and valid, and some
// file systems cannot sync a directory.
func syncDirectory(root *os.Root) {
	if d, err := root.Open("."); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}
