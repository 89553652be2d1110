package credentials

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// The empty files in a login's directory that all front ends lock. They stay: removing a lock
// file is a race of its own. Who holds the refresher's lock may take the write-back lock, and
// never the other way round, so the two cannot deadlock.
const (
	LockFile        = ".mcp-agents.lock"         // held for one write-back
	RefreshLockFile = ".mcp-agents-refresh.lock" // held by the one refresher: see [Acquire]
)

const (
	// lockWait bounds the wait for another front end, which holds the lock for as long as
	// it takes to sync one small file.
	lockWait  = 5 * time.Second
	lockRetry = 10 * time.Millisecond
)

// lockDirectory takes the write-back lock of a login's directory, waiting at most lockWait.
func lockDirectory(ctx context.Context, root *os.Root) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	return lock(root, LockFile, func(l *flock.Flock) (bool, error) { return l.TryLockContext(ctx, lockRetry) })
}

// tryRefreshLock takes the refresher's lock of a login's directory. It does not wait: unlock is
// nil while another holds the lock.
func tryRefreshLock(dir string) (unlock func(), err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return lock(root, RefreshLockFile, (*flock.Flock).TryLock)
}

// lock takes the lock of a name with try, and returns nil if try did not get it. The lock dies
// with its holder's descriptor, so a crash leaves none.
func lock(root *os.Root, name string, try func(*flock.Flock) (bool, error)) (unlock func(), err error) {
	if err := createLockFile(root, name); err != nil {
		return nil, fmt.Errorf("create the lock file: %w", err)
	}
	path := filepath.Join(root.Name(), name)
	l := flock.New(path)
	got, err := try(l)
	if err != nil {
		return nil, fmt.Errorf("lock %s, which another mcp-agents may hold: %w", path, err)
	}
	if !got {
		return nil, nil
	}
	// The library opens by path and follows links: what it locked must be what we checked.
	locked, errLocked := l.Stat()
	named, errNamed := root.Lstat(name)
	if err := errors.Join(errLocked, errNamed); err != nil || !os.SameFile(locked, named) {
		_ = l.Unlock()
		return nil, errors.Join(fmt.Errorf("%s was replaced while it was locked", path), err)
	}
	return func() { _ = l.Unlock() }, nil
}

// createLockFile makes a lock file unless it is there. Root gives it to the owner of the
// directory, whose own front end must be able to open it.
func createLockFile(root *os.Root, name string) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, FileMode)
	if errors.Is(err, fs.ErrExist) {
		info, err := root.Lstat(name)
		if err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("%s %w: remove it", filepath.Join(root.Name(), name), errNotRegular)
		}
		return err
	}
	if err != nil {
		return err
	}
	defer f.Close()
	dir, err := root.Stat(".")
	if err == nil {
		err = keepOwner(f, dir)
	}
	if err != nil {
		_ = root.Remove(name)
	}
	return err
}
