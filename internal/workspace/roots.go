package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Roots are the directories that agents may work in: absolute, existing, with
// every symbolic link resolved, without repetitions, in the operator's order.
// The zero value holds none and lets no working directory pass.
type Roots struct {
	dirs  []string
	start string // the startup directory, resolved
}

// RootError is a named root that cannot be used.
type RootError struct {
	Path    string // as it was named
	Problem string // the rest of a sentence: "must exist"
	Err     error  // the cause, or nil
}

func (e *RootError) Error() string {
	text := fmt.Sprintf("workspace %q %s; name an existing directory with --workspace", e.Path, e.Problem)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *RootError) Unwrap() error { return e.Err }

// Resolve returns the roots. Each named path, made absolute from the startup
// directory, must exist and be a directory: otherwise the error is a
// *[RootError]. If none is named, the startup directory is the only root,
// unless it is one that must be named; then the error is a *[RefusedError],
// which is no reason to end a server: its calls carry the error.
//
// home is the user's home directory, empty where there is none. private lists
// what a default must not share: paths of logins and of engine sockets, which
// need not exist.
func Resolve(named []string, startDir, home string, private []string) (Roots, error) {
	start, err := resolveDir(startDir, "")
	if len(named) == 0 {
		if err != nil {
			return Roots{}, err
		}
		if refused := refuse(start, home, private); refused != nil {
			return Roots{}, refused
		}
		return Roots{dirs: []string{start}, start: start}, nil
	}
	if err != nil {
		start = "" // gone since the start: named roots do without it
	}
	r := Roots{start: start}
	for _, path := range named {
		dir, err := resolveDir(path, startDir)
		if err != nil {
			return Roots{}, err
		}
		if !slices.Contains(r.dirs, dir) {
			r.dirs = append(r.dirs, dir)
		}
	}
	return r, nil
}

// ofContainers are directories that every container has of its own: one that is
// mounted there takes the CLI, its libraries or its init away.
var ofContainers = []string{"/", "/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/tmp", "/usr", "/usr/bin", "/usr/lib",
	"/usr/local", "/usr/local/bin"}

// Mountable returns a *[RootError] for a root that no container can have at the
// same path.
func (r Roots) Mountable() error {
	for _, dir := range r.dirs {
		if slices.Contains(ofContainers, dir) {
			return &RootError{Path: dir, Problem: "is a directory that a container has of its own"}
		}
	}
	return nil
}

// resolveDir resolves links before "..", as the kernel does: in "link/.." it
// is the parent of the link's target, which filepath.Abs would lose.
func resolveDir(path, base string) (string, error) {
	full := path
	if !filepath.IsAbs(full) {
		if path == "" || !filepath.IsAbs(base) {
			return "", &RootError{Path: path, Problem: "must be an absolute path"}
		}
		full = base + string(filepath.Separator) + path
	}
	dir, err := realDir(full)
	if err != nil {
		return "", &RootError{Path: path, Problem: problemOf(err), Err: cause(err)}
	}
	return dir, nil
}

var errNotDir = errors.New("not a directory")

func realDir(path string) (string, error) {
	dir, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", errNotDir
	}
	return filepath.Clean(dir), nil
}

// problemOf puts an error of the file system into the words of an argument
// fault. Everything that is not plainly something else does not exist for us:
// a name too long, a loop of links, a NUL character.
func problemOf(err error) string {
	switch {
	case errors.Is(err, errNotDir):
		return "must be a directory"
	case errors.Is(err, fs.ErrPermission):
		return "must be accessible"
	}
	return "must exist"
}

// cause drops what says no more than the problem does, and the path, which the
// message has already and which may hold anything.
func cause(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir) {
		return nil
	}
	return withoutPath(err)
}

func withoutPath(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// Dirs returns the roots in the operator's order.
func (r Roots) Dirs() []string { return slices.Clone(r.dirs) }

// String lists the roots for a message.
func (r Roots) String() string {
	if len(r.dirs) == 0 {
		return "(none)"
	}
	return strings.Join(r.dirs, ", ")
}

// Default is where a CLI works that was told no directory: the first root that
// holds the startup directory, else the first root, else "".
func (r Roots) Default() string {
	if dir, ok := r.Holding(r.start); ok {
		return dir
	}
	if len(r.dirs) > 0 {
		return r.dirs[0]
	}
	return ""
}

// Holding returns the first root that is the directory or lies above it. The
// path must be resolved, as [Roots.Cwd] returns it.
func (r Roots) Holding(dir string) (string, bool) {
	for _, root := range r.dirs {
		if dir != "" && within(root, dir) {
			return root, true
		}
	}
	return "", false
}

// CwdError is a working directory that a caller may not use. Its text is the
// problem string of an argument fault.
type CwdError struct{ Problem string }

func (e *CwdError) Error() string { return e.Problem }

// Cwd checks a caller's working directory and returns it with every symbolic
// link resolved, which is the path under which a sandbox mounts it. The error
// is a *[CwdError]. Paths are compared byte by byte after resolving: on a file
// system that ignores case a different spelling may be refused, and never
// wrongly accepted.
func (r Roots) Cwd(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", &CwdError{Problem: "must be an absolute path"}
	}
	dir, err := realDir(path)
	if err != nil {
		return "", &CwdError{Problem: problemOf(err)}
	}
	if _, ok := r.Holding(dir); !ok {
		return "", &CwdError{Problem: "must be inside a workspace root: " + r.String()}
	}
	return dir, nil
}

// within reports whether path is dir or lies below it; both are clean and
// absolute. It compares whole elements: /home2 is not within /home.
func within(dir, path string) bool {
	if dir == path {
		return true
	}
	if !strings.HasSuffix(dir, string(filepath.Separator)) {
		dir += string(filepath.Separator)
	}
	return strings.HasPrefix(path, dir)
}
