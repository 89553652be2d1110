package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mcpagents/internal/sandbox/guest"
)

// unlockedAge is how old a home without a lock file must be before it is swept:
// earlier programs of this family made such homes.
const unlockedAge = 12 * time.Hour

// home is a private home: a directory 0700 whose lock file is held by its
// front end until init has it, and by init until the end.
type home struct {
	path string
	lock *os.File
}

// makeHome makes a private home below root. Root must be a real directory,
// since logins go below it; it is made when it is missing. The home gets its
// name once its lock is held, so that no sweep sees it unlocked; until then it
// has an unowned name, and root a shared lock that a sweep of such names needs
// for itself.
func makeHome(root, prefix string) (*home, error) {
	if err := checkRoot(root); err != nil {
		return nil, err
	}
	making, err := lockRoot(root, unix.LOCK_SH)
	if err != nil {
		return nil, err
	}
	defer making.Close()
	path, err := os.MkdirTemp(root, guest.UnownedPrefix)
	if err != nil {
		return nil, fmt.Errorf("make a private home: %w", err)
	}
	h := &home{path: path}
	named := filepath.Join(root, prefix+strings.TrimPrefix(filepath.Base(path), guest.UnownedPrefix))
	if h.lock, err = os.OpenFile(filepath.Join(path, guest.LockName), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		err = errors.Join(unix.Flock(int(h.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB), os.Rename(path, named))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the private home: %w", err), h.remove())
	}
	h.path = named
	return h, nil
}

// lockRoot locks the directory of private homes.
func lockRoot(root string, how int) (*os.File, error) {
	dir, err := os.Open(root)
	if err != nil {
		return nil, fmt.Errorf("open the directory of private homes: %w", err)
	}
	if err := unix.Flock(int(dir.Fd()), how); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the directory of private homes: %w", err), dir.Close())
	}
	return dir, nil
}

// unowned lists the homes below root whose making or removal was cut short;
// none while one is being made.
func unowned(root string) []string {
	alone, err := lockRoot(root, unix.LOCK_EX|unix.LOCK_NB)
	if err != nil {
		return nil
	}
	defer alone.Close()
	paths, _ := filepath.Glob(filepath.Join(root, guest.UnownedPrefix+"*"))
	return paths
}

func checkRoot(root string) error {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return fmt.Errorf("make the directory of private homes: %w", err)
	}
	st, err := os.Lstat(root)
	if err != nil {
		return fmt.Errorf("look at the directory of private homes: %w", err)
	}
	if !st.IsDir() {
		return fmt.Errorf("the directory of private homes is not a real directory (a link?): %s", root)
	}
	if err := os.Chmod(root, 0o700); err != nil { //nolint:gosec // a directory
		return fmt.Errorf("close the directory of private homes to others: %w", err)
	}
	return nil
}

func (h *home) remove() error {
	if h.lock != nil {
		_ = h.lock.Close()
	}
	return guest.RemoveHome(h.path)
}

// staleHomes lists the homes below dir that nobody holds: those whose lock is
// free, and old ones that never had a lock.
func staleHomes(dir, prefix string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var stale []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() && strings.HasPrefix(e.Name(), prefix) && isStale(path) {
			stale = append(stale, path)
		}
	}
	return stale
}

func isStale(path string) bool {
	lock, err := os.OpenFile(filepath.Join(path, guest.LockName), os.O_RDWR|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		st, err := os.Lstat(path)
		return err == nil && time.Since(st.ModTime()) > unlockedAge
	}
	if err != nil {
		return false
	}
	defer lock.Close()
	return unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}
