package credentials

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"
)

// WriteBack stores a changed credential in the user's directory, if and only if
//
//   - name is the source's credential and it was copied from a file;
//   - the login was not invalidated;
//   - data differs from the version we know and from the user's file, is none that came
//     before, and is an acceptable successor (a bounded JSON object of the same account
//     that blanks no secret which the old one holds);
//   - the user's file is still, byte for byte, the version that was copied or that we wrote
//     last, checked again under a lock just before the rename. The CLIs do not take our
//     lock; against them the last check leaves a window of one rename.
//
// The user's file is never opened for writing: a temporary file is written, synced and renamed
// over it, so that a crash at any point leaves one valid file, old or new. The result has
// [FileMode] and, for root, the owner of the old file. A file that is a symbolic link is
// refused: renaming would replace the link, and following it would write where the user did
// not say. The directory may be a link.
//
// ctx bounds the wait for the lock, which is never longer than five seconds: the call at exit
// needs one that is still alive. The error is not nil only with [Failed]. data is hostile; nothing
// of it is quoted. Once the user's file has changed, by us or by another, or turned out to be one
// that is never written, the refresher's lock is released: see [Acquire].
func (s *Snapshot) WriteBack(ctx context.Context, name string, data []byte) (Outcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, err := s.writeBack(ctx, name, data)
	if err != nil {
		err = fmt.Errorf("in %s: %w", s.source.Directory(), err)
		if errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("%w; let this user write there, or log in again once this copy is gone", err)
		}
		o = Outcome{Status: Failed, Reason: err.Error()}
		err = fmt.Errorf("failed to persist %s %s: %w", s.source.Name, s.source.Credential, err)
	}
	o.source = s.source
	return o, err
}

func (s *Snapshot) writeBack(ctx context.Context, name string, data []byte) (Outcome, error) {
	switch {
	case name != s.source.Credential:
		return refused("only " + s.source.Credential + " is ever written back"), nil
	case !s.fromFile:
		return Outcome{Status: Unchanged}, nil
	case s.invalid.Load():
		return Outcome{Status: Invalidated}, nil
	case bytes.Equal(data, s.base):
		return Outcome{Status: Unchanged}, nil
	case s.earlier[sha256.Sum256(data)]:
		return refused("it is an earlier version, whose refresh token is spent"), nil
	}
	if err := s.source.checkReplacement(s.base, data); err != nil {
		return refused(err.Error()), nil
	}
	root, err := os.OpenRoot(s.source.Directory())
	if absent(err) {
		return Outcome{Status: CanonicalChanged}, nil
	}
	if err != nil {
		return Outcome{}, err
	}
	defer root.Close()
	o, err := s.replace(ctx, root, data)
	if err == nil && (o.Status == Written || o.Status == Unchanged) {
		s.earlier[sha256.Sum256(s.base)] = true
		s.base = bytes.Clone(data)
	}
	if err == nil {
		s.Release() // the user's file has changed, or is one that we never write
	}
	return o, err
}

// replace does the part that needs the directory. Unchanged means that the user's file is
// data already.
func (s *Snapshot) replace(ctx context.Context, root *os.Root, data []byte) (Outcome, error) {
	// Before the lock, so that a directory that gets no write-back gets no lock file either.
	if old, o, err := s.compare(root, data); old == nil {
		return o, err
	}
	unlock, err := lockDirectory(ctx, root)
	if err != nil {
		return Outcome{}, err
	}
	defer unlock()
	s.at("locked")
	s.removeLeftovers(root)
	old, o, err := s.compare(root, data)
	if old == nil {
		return o, err
	}
	temp, err := s.writeTemp(root, data, old)
	if err != nil {
		return Outcome{}, err
	}
	// After the rename there is nothing of that name left to remove.
	defer root.Remove(temp)
	s.at("temporary file complete")
	if old, o, err := s.compare(root, data); old == nil {
		return o, err
	}
	if s.invalid.Load() {
		return Outcome{Status: Invalidated}, nil
	}
	s.at("checked")
	if err := root.Rename(temp, s.source.Credential); err != nil {
		return Outcome{}, err
	}
	s.at("renamed")
	syncDirectory(root)
	return Outcome{Status: Written}, nil
}

// compare looks at the user's file. It gives the file if data may replace it, and otherwise
// the outcome that says why not.
func (s *Snapshot) compare(root *os.Root, data []byte) (fs.FileInfo, Outcome, error) {
	changed := Outcome{Status: CanonicalChanged}
	info, err := root.Lstat(s.source.Credential)
	switch {
	case absent(err):
		return nil, changed, nil // a logout stays a logout
	case err != nil:
		return nil, Outcome{}, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, refused("the canonical file is a symbolic link"), nil
	case !info.Mode().IsRegular():
		return nil, refused("the canonical file is not a regular file"), nil
	}
	f, err := root.Open(s.source.Credential)
	if absent(err) {
		return nil, changed, nil
	}
	if err != nil {
		return nil, Outcome{}, err
	}
	defer f.Close()
	opened, err := f.Stat()
	if err != nil {
		return nil, Outcome{}, err
	}
	if !os.SameFile(info, opened) {
		return nil, changed, nil
	}
	current, err := readBounded(f)
	switch {
	case errors.Is(err, errTooLong):
		return nil, changed, nil
	case err != nil:
		return nil, Outcome{}, err
	case bytes.Equal(current, data):
		return nil, Outcome{Status: Unchanged}, nil
	case !bytes.Equal(current, s.base):
		return nil, changed, nil
	}
	return info, Outcome{}, nil
}

// writeTemp makes the complete successor of old under a name that nobody had before, or
// leaves nothing.
func (s *Snapshot) writeTemp(root *os.Root, data []byte, old fs.FileInfo) (name string, err error) {
	name = fmt.Sprintf("%s%d-%s%s", s.tempPrefix(), os.Getpid(), newUUID(), tempSuffix)
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, FileMode)
	if err != nil {
		return "", err
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			_ = root.Remove(name) // the first error tells more
		}
	}()
	s.at("temporary file created")
	if err := f.Chmod(FileMode); err != nil { // a umask may have taken the owner's bits
		return name, err
	}
	if _, err := f.Write(data); err != nil {
		return name, err
	}
	s.at("temporary file written")
	if err := keepOwner(f, old); err != nil {
		return name, fmt.Errorf("keep the owner of the canonical file: %w", err)
	}
	return name, f.Sync()
}

const (
	tempSuffix = ".tmp"
	// leftoverAge is when a temporary file is taken for a dead writer's. Ours live for
	// milliseconds; another program that uses the name may not take our lock.
	leftoverAge = time.Hour
)

func (s *Snapshot) tempPrefix() string { return "." + s.source.Credential + ".mcp-agents-" }

// removeLeftovers removes what writers that crashed left: each is a copy of the login.
// Best effort; the caller holds the lock.
func (s *Snapshot) removeLeftovers(root *os.Root) {
	names, err := fs.Glob(root.FS(), s.tempPrefix()+"*"+tempSuffix)
	if err != nil {
		return
	}
	for _, name := range names {
		info, err := root.Lstat(name)
		if err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > leftoverAge {
			_ = root.Remove(name)
		}
	}
}

func (s *Snapshot) at(step string) {
	if s.step != nil {
		s.step(step)
	}
}

// newUUID is a random UUID, version 4 of RFC 9562.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// rotateTime bounds one [Snapshot.Rotated].
const rotateTime = 5 * time.Second

// Rotated writes back a credential that the CLI changed just now, within 5 s, and logs what
// came of it.
func (s *Snapshot) Rotated(name string, data []byte, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), rotateTime)
	defer cancel()
	outcome, err := s.WriteBack(ctx, name, data)
	if message := outcome.Message(); message != "" {
		log.Info(message)
	}
	if err != nil {
		log.Debug("write-back", "error", err)
	}
}
