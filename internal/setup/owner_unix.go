//go:build unix

package setup

import (
	"io/fs"
	"os"
	"syscall"
)

// sameOwner gives f the owner of like. A foreign owner that must be kept and
// cannot be is an error; for a new file, only root gives it away.
func sameOwner(f *os.File, like fs.FileInfo, must bool) error {
	want, ok := like.Sys().(*syscall.Stat_t)
	if !ok || (!must && os.Geteuid() != 0) {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if has, ok := info.Sys().(*syscall.Stat_t); ok && has.Uid == want.Uid && has.Gid == want.Gid {
		return nil
	}
	return f.Chown(int(want.Uid), int(want.Gid))
}
