package credentials

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// MaxFile is the largest login file in bytes. It leaves 1 KiB of a 1 MiB protocol frame for
// the name and the mode that travel with the content.
const MaxFile = 1<<20 - 1<<10

// FileMode is the mode of every login file, inside a sandbox and outside.
const FileMode fs.FileMode = 0o600

// File is one login file for a sandbox.
type File struct {
	Name string // a plain name from the source, never a path
	Mode fs.FileMode
	Data []byte
}

// Snapshot is a copy of a login at one moment, and the memory that a conditional write-back
// needs. It is safe for use by several goroutines.
type Snapshot struct {
	source  Source
	files   []File
	skipped []error
	missing *MissingError
	key     string // the variable that the credential is made of

	expires time.Time   // of the access token; zero if that is not known
	unlock  func()      // gives the refresher's lock back; nil if it was never held
	timer   *time.Timer // calls unlock at the latest

	invalid atomic.Bool
	step    func(string) // called between the steps of a write-back; nil but in tests

	mu       sync.Mutex
	fromFile bool                       // only a copy of a file is ever written back
	base     []byte                     // what the user's file must still be for a write-back
	earlier  map[[sha256.Size]byte]bool // versions that base once was
}

// MissingError says that a provider has no usable login, which and what to do about it.
type MissingError struct {
	Name   string // the provider
	Path   string // the credential file that was looked for
	Reason string // what is wrong with it
	Remedy string // what to do
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s login is missing: %s %s; %s", e.Name, e.Path, e.Reason, e.Remedy)
}

// Take copies the files that src names, and no other. An absent credential is no error: it
// gives the snapshot of a key variable, or an empty one, and [Snapshot.Missing] tells them
// apart. A credential that exists but cannot be copied (unreadable, no regular file, longer
// than [MaxFile]) is an error that names the file and never its content. Symbolic links are
// followed for reading, as the CLI itself does.
func Take(ctx context.Context, src Source) (*Snapshot, error) {
	s := &Snapshot{source: src, earlier: map[[sha256.Size]byte]bool{}}
	path := src.path()
	data, err := readFile(ctx, path)
	switch {
	case err == nil:
		s.fromFile, s.base = true, data
		s.missing, s.expires = src.judge(path, data)
		s.add(src.Credential, data)
	case absent(err):
		if s.key, data = src.fromKey(); data != nil {
			s.add(src.Credential, data)
		} else {
			s.missing = src.missingError(path, "does not exist")
		}
	case ctx.Err() != nil:
		return nil, fmt.Errorf("copy %s login: %w", src.Name, err)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("copy %s login: %w: let this user read it", src.Name, err)
	default:
		return nil, fmt.Errorf("copy %s login: %w: remove it and %s", src.Name, err, src.Remedy)
	}
	for _, name := range src.Extras {
		switch data, err := readFile(ctx, filepath.Join(src.Directory(), name)); {
		case err == nil:
			s.add(name, data)
		case ctx.Err() != nil:
			return nil, fmt.Errorf("copy %s login: %w", src.Name, err)
		case !absent(err):
			s.skipped = append(s.skipped, fmt.Errorf("skip optional %s file: %w", src.Name, err))
		}
	}
	return s, nil
}

func (s *Snapshot) add(name string, data []byte) {
	s.files = append(s.files, File{Name: name, Mode: FileMode, Data: data})
}

// Files are the files for a sandbox, the credential first. The caller owns the result.
func (s *Snapshot) Files() []File {
	files := make([]File, len(s.files))
	for i, f := range s.files {
		f.Data = bytes.Clone(f.Data)
		files[i] = f
	}
	return files
}

// Skipped are the reasons why optional files that exist were not copied, for a log.
func (s *Snapshot) Skipped() []error { return s.skipped }

// Missing is a [*MissingError] if the snapshot logs nobody in: there is neither a credential
// file nor a key variable, or the file holds no credential. Otherwise it is nil.
func (s *Snapshot) Missing() error {
	if s.missing == nil {
		return nil
	}
	return s.missing
}

// KeyVariable is the variable that holds the login where no file does; otherwise it is empty.
func (s *Snapshot) KeyVariable() string { return s.key }

// Expires is when the access token ends; zero where the file does not say.
func (s *Snapshot) Expires() time.Time { return s.expires }

// Invalidate reports that the vendor refused this login. From then on nothing is written
// back, since a refused copy must not replace what the user may have renewed. It does not
// wait for a write-back under way; one that has not yet renamed its file is given up. The
// refresher's lock is released.
func (s *Snapshot) Invalidate() {
	s.invalid.Store(true)
	s.Release()
}

// judge looks at a credential that exists: why it is none, and when its access token ends. It
// is copied all the same: the CLI has the last word, the caller decides whether to ask it.
func (s Source) judge(path string, data []byte) (*MissingError, time.Time) {
	doc, err := decodeObject(data)
	if err != nil {
		return s.missingError(path, err.Error()), time.Time{}
	}
	if len(s.held(doc)) == 0 {
		return s.missingError(path, "holds no credential"), time.Time{}
	}
	return nil, s.expires(doc)
}

func (s Source) missingError(path, reason string) *MissingError {
	remedy := s.Remedy
	if len(s.KeyVariables) > 0 && reason == "does not exist" {
		remedy += ", or set " + strings.Join(s.KeyVariables, " or ")
	}
	return &MissingError{Name: s.Name, Path: path, Reason: reason, Remedy: remedy}
}

// fromKey makes a credential of the first key variable that is set, whose name it
// returns, or nil.
func (s Source) fromKey() (variable string, credential []byte) {
	for _, name := range s.KeyVariables {
		key := strings.TrimSpace(s.getenv(name))
		if key == "" {
			continue
		}
		data, err := json.Marshal(map[string]string{s.KeyMember: key})
		if err == nil && len(data) <= MaxFile {
			return name, data
		}
	}
	return "", nil
}

// absent: also a path whose parent is no directory holds no login.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// errNotRegular and errTooLong are why a file is not taken for a login.
var (
	errNotRegular = errors.New("is not a regular file")
	errTooLong    = fmt.Errorf("is longer than %d bytes", MaxFile)
)

// readFile reads one regular file of at most MaxFile bytes. It looks before it opens, since
// opening a named pipe would wait for its writer.
func readFile(ctx context.Context, path string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s %w", path, errNotRegular)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := readBounded(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, nil
}

// readBounded reads an open file, which must be regular.
func readBounded(f *os.File) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxFile {
		return nil, errTooLong
	}
	return data, nil
}
