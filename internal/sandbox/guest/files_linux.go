package guest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"mcpagents/internal/sandbox/wire"
)

// files puts login files into the private home and takes them out again. The
// command may have replaced any of them, or their directory, by anything: they
// are opened through no symlink and read only when regular and small.
type files struct {
	home, dir string // dir is relative to home, "" for the home itself
	seen      map[string]fileStamp
}

// fileStamp changes when a file is written or replaced.
type fileStamp struct {
	ino, size  int64
	mtim, ctim unix.Timespec
}

func (f *files) path() string { return filepath.Join(f.home, f.dir) }

// openDir opens the files' directory, made 0700 when make is set.
func (f *files) openDir(make bool) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	home, err := unix.Open(f.home, flags, 0)
	if err != nil || f.dir == "" {
		return home, err
	}
	defer unix.Close(home)
	if make {
		if err := unix.Mkdirat(home, f.dir, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
			return -1, err
		}
	}
	return unix.Openat(home, f.dir, flags, 0)
}

// put creates a file, exclusively and with mode 0600.
func (f *files) put(file wire.File) error {
	dir, err := f.openDir(true)
	if err != nil {
		return fmt.Errorf("create %s: %w", file.Name, err)
	}
	defer unix.Close(dir)
	fd, err := unix.Openat(dir, file.Name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("create %s: %w", file.Name, err)
	}
	out := os.NewFile(uintptr(fd), file.Name)
	_, err = out.Write(file.Data)
	return errors.Join(err, out.Close())
}

// collect reads a file back.
func (f *files) collect(name string) wire.Collected {
	c, _ := f.read(name, fileStamp{})
	c.Asked = true
	return c
}

// changed returns the watched files that changed since the last call. A file
// that is missing or refused is not reported: there is nothing to write back.
func (f *files) changed(names []string) []wire.Collected {
	var out []wire.Collected
	for _, name := range names {
		c, stamp := f.read(name, f.seen[name])
		if c.State == wire.FilePresent && f.seen[name] != stamp {
			f.seen[name] = stamp
			out = append(out, c)
		}
	}
	return out
}

// mark takes the present state of the watched files as seen.
func (f *files) mark(names []string) {
	f.seen = map[string]fileStamp{}
	f.changed(names)
}

// read reads a file, but not the content of one whose stamp is still known.
func (f *files) read(name string, known fileStamp) (wire.Collected, fileStamp) {
	missing := wire.Collected{Name: name, State: wire.FileMissing}
	refused := wire.Collected{Name: name, State: wire.FileRefused}
	dir, err := f.openDir(false)
	if errors.Is(err, unix.ENOENT) {
		return missing, fileStamp{}
	}
	if err != nil {
		return refused, fileStamp{}
	}
	defer unix.Close(dir)
	// Non-blocking, so that a pipe in the file's place does not hold us.
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return missing, fileStamp{}
	}
	if err != nil {
		return refused, fileStamp{}
	}
	in := os.NewFile(uintptr(fd), name)
	defer in.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > wire.MaxFile {
		return refused, fileStamp{}
	}
	stamp := fileStamp{ino: int64(st.Ino), size: st.Size, mtim: st.Mtim, ctim: st.Ctim}
	if stamp == known {
		return wire.Collected{Name: name, State: wire.FilePresent}, stamp
	}
	data, err := io.ReadAll(io.LimitReader(in, wire.MaxFile+1))
	if err != nil || len(data) > wire.MaxFile {
		return refused, fileStamp{}
	}
	return wire.Collected{Name: name, State: wire.FilePresent, Data: data}, stamp
}
