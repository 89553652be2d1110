package login

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

// LockFile is the name of the empty file in a login's directory that write-backs of all
// front ends lock. It stays: removing a lock file is a race of its own.
const LockFile = ".mcp-agents.lock"

const (
	// lockWait bounds the wait for another front end, which holds the lock for as long as
	// it takes to sync one small file.
	lockWait  = 5 * time.Second
	lockRetry = 10 * time.Millisecond
)

// lockDirectory takes the write-back lock of a login's directory, waiting at most lockWait.
// The lock dies with its holder's descriptor, so a crash leaves none.
func lockDirectory(ctx context.Context, root *os.Root) (unlock func(), err error) {
	if err := createLockFile(root); err != nil {
		return nil, fmt.Errorf("create the lock file: %w", err)
	}
	path := filepath.Join(root.Name(), LockFile)
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	lock := flock.New(path)
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return nil, fmt.Errorf("lock %s, which another mcp-agents may hold: %w", path, err)
	}
	// The library opens by path and follows links: what it locked must be what we checked.
	locked, errLocked := lock.Stat()
	named, errNamed := root.Lstat(LockFile)
	if err := errors.Join(errLocked, errNamed); err != nil || !os.SameFile(locked, named) {
		_ = lock.Unlock()
		return nil, errors.Join(fmt.Errorf("%s was replaced while it was locked", path), err)
	}
	return func() { _ = lock.Unlock() }, nil
}

// createLockFile makes the lock file unless it is there. Root gives it to the owner of the
// directory, whose own front end must be able to open it.
func createLockFile(root *os.Root) error {
	f, err := root.OpenFile(LockFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, FileMode)
	if errors.Is(err, fs.ErrExist) {
		info, err := root.Lstat(LockFile)
		if err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("%s %w: remove it", filepath.Join(root.Name(), LockFile), errNotRegular)
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
		_ = root.Remove(LockFile)
	}
	return err
}
