package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// RefusedError is a startup directory that becomes a workspace only if it is
// named.
type RefusedError struct {
	Dir    string // resolved
	Reason string // "is your home directory"
	Flag   string // what to add to the command line to allow it
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the startup directory %s %s and is not shared with agents unless it is named: "+
		"start in a project's directory, name one with --workspace PATH, or add %s", e.Dir, e.Reason, e.Flag)
}

// systemDirs are refused themselves, and so is what lies above them. Below
// /usr and /var people do have projects (/usr/src/app, /var/lib/jenkins, the
// temporary directory of macOS); below the others nobody has.
var systemDirs = []struct {
	path  string
	below bool
}{
	{"/etc", true}, {"/proc", true}, {"/sys", true}, {"/dev", true}, {"/usr", false}, {"/var", false},
}

// refuse judges a resolved directory that nobody named.
func refuse(dir, home string, private []string) *RefusedError {
	if reason := whyRefused(dir, home, private); reason != "" {
		return &RefusedError{Dir: dir, Reason: reason, Flag: "--workspace " + quote(dir)}
	}
	return nil
}

func whyRefused(dir, home string, private []string) string {
	if filepath.Dir(dir) == dir {
		return "is the root of the file system"
	}
	if home != "" && holds(dir, home) {
		if holds(home, dir) {
			return "is your home directory"
		}
		return "holds your home directory"
	}
	for _, sys := range systemDirs {
		if holds(dir, sys.path) || (sys.below && holds(sys.path, dir)) {
			return "belongs to the system (" + sys.path + ")"
		}
	}
	for _, path := range private {
		if path != "" && holds(dir, path) {
			return "holds a login or the engine's socket (" + path + ")"
		}
	}
	return ""
}

// holds reports whether path is dir or lies below it, however the two are
// spelled: it compares the paths as they are, resolved, and by the identity of
// every directory above path, which sees through case and bind mounts. The
// path need not exist, nor need dir; a relative path lies nowhere.
func holds(dir, path string) bool {
	if !filepath.IsAbs(path) {
		return false
	}
	path = filepath.Clean(path)
	if within(filepath.Clean(dir), path) {
		return true
	}
	info, err := os.Stat(dir)
	if err != nil {
		return false
	}
	for _, p := range []string{path, resolveExisting(path)} {
		for {
			if above, err := os.Stat(p); err == nil && os.SameFile(info, above) {
				return true
			}
			parent := filepath.Dir(p)
			if parent == p {
				break
			}
			p = parent
		}
	}
	return false
}

// resolveExisting resolves the links of the longest part of the path that
// exists and keeps the rest.
func resolveExisting(path string) string {
	for head, tail := path, ""; ; {
		if real, err := filepath.EvalSymlinks(head); err == nil {
			return filepath.Join(real, tail)
		}
		parent := filepath.Dir(head)
		if parent == head {
			return path
		}
		head, tail = parent, filepath.Join(filepath.Base(head), tail)
	}
}

var plainPath = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./\\-]+$`)

// quote makes a path fit for a POSIX command line.
func quote(path string) string {
	if plainPath.MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
