package setup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxFile bounds a configuration file, in bytes: a user's file of Claude Code
// grows with every project.
const maxFile = 64 << 20

// target is a configuration file that may not be there yet.
type target struct {
	path          string
	mode, dirMode uint32
	ownDir        bool // the directory is the client's own and goes when it is empty
}

// file is a configuration file as it was read.
type file struct {
	target
	data   []byte
	exists bool
	info   fs.FileInfo
}

// open reads the file, symbolic links followed: an edit then replaces what they
// lead to, not the link.
func open(t target) (*file, error) {
	resolved, err := filepath.EvalSymlinks(t.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(t.path); err == nil {
			return nil, fmt.Errorf("%s is a symbolic link to nothing: make its target, or remove the link", t.path)
		}
		return &file{target: t}, nil
	case err != nil:
		return nil, fmt.Errorf("find %s: %w", t.path, err)
	}
	t.path = resolved
	f := &file{target: t, exists: true}
	f.data, f.info, err = read(resolved)
	return f, err
}

func read(path string) ([]byte, fs.FileInfo, error) {
	info, err := os.Stat(path) // first: opening a pipe would wait
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(b) > maxFile {
		return nil, nil, fmt.Errorf("%s is over %d MiB", path, maxFile>>20)
	}
	return b, info, nil
}

// unchanged fails if somebody else wrote the file since it was read, or if its
// mode forbids us to write it.
func (f *file) unchanged() error {
	if !f.exists {
		if _, err := os.Lstat(f.path); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s came into being in between: try again", f.path)
		}
		return nil
	}
	now, _, err := read(f.path)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, f.data) {
		return fmt.Errorf("%s was changed in between: try again", f.path)
	}
	w, err := os.OpenFile(f.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return w.Close()
}

// replace writes the file whole: a temporary file in the same directory with
// the old one's mode and owner is renamed over it.
func (f *file) replace(data []byte) (err error) {
	dir := filepath.Dir(f.path)
	if !f.exists {
		if err := makeDir(dir, fs.FileMode(f.dirMode)); err != nil {
			return err
		}
	}
	tmp, err := os.CreateTemp(dir, ".mcp-agents-*")
	if err != nil {
		return fmt.Errorf("write beside %s: %w", f.path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	if _, err = tmp.Write(data); err == nil {
		err = f.dress(tmp)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return fmt.Errorf("write beside %s: %w", f.path, err)
	}
	if err = f.unchanged(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), f.path)
}

// dress gives the temporary file the mode and the owner that the file has. A
// new file belongs to the owner of its directory: root in a container writes
// for a user.
func (f *file) dress(tmp *os.File) error {
	mode, like := fs.FileMode(f.mode), f.info
	if f.exists {
		mode = f.info.Mode().Perm()
	} else {
		var err error
		if like, err = os.Stat(filepath.Dir(f.path)); err != nil {
			return err
		}
	}
	return errors.Join(sameOwner(tmp, like, f.exists), tmp.Chmod(mode))
}

// makeDir makes the directory of a new file; its parent must be there.
func makeDir(dir string, mode fs.FileMode) error {
	err := os.Mkdir(dir, mode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("make the directory of the file: %w", err)
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	parent, err := os.Stat(filepath.Dir(dir))
	if err != nil {
		return err
	}
	return sameOwner(d, parent, false)
}

// remove removes the file, and a project's directory for it that is then empty.
func (f *file) remove() error {
	if err := f.unchanged(); err != nil {
		return err
	}
	if err := os.Remove(f.path); err != nil {
		return err
	}
	if !f.ownDir {
		return nil
	}
	dir := filepath.Dir(f.path)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		return err
	}
	return os.Remove(dir)
}
