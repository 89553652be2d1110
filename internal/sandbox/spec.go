// Package sandbox is one disposable environment for one command: what it is
// made of (Spec), what makes it (Runtime), and the conversation with the
// sandbox-init inside (Sandbox, Process).
//
// Two runtimes exist: package docker makes containers, package local makes a
// supervised process tree. They differ only in how the byte stream to
// sandbox-init is made and how the thing is destroyed; grace, signals, files,
// flow control and exit status are the code here and in package guest.
package sandbox

import (
	"context"
	"io"
	"time"
)

// Spec is what a sandbox is made of. The zero value of a limit means the
// runtime's default.
type Spec struct {
	ID       string // unique; Open makes one when it is empty
	Provider string // codex, claude, gemini, browser: for labels and messages
	Instance string // the front end's own id, for display
	Image    string
	// Mounts appear inside at the same absolute path as outside.
	Mounts []Mount
	// Network is bridge, none, host, container:<id> or a network's name.
	Network string
	// User is "uid:gid"; empty means the runtime's rule.
	User string
	// NotRoot puts a user of no rights in the place of uid 0: Chromium's own
	// sandbox refuses to run as root. Containers only.
	NotRoot bool
	// Syscalls are system calls that the sandbox may use beyond the default
	// seccomp profile: what a CLI's own sandbox needs. Containers only.
	Syscalls []string
	// FilesDir is where login files go, relative to the private home.
	FilesDir string
	// HomeRoot is the directory in which the local runtime makes the private
	// home, and HomePrefix the beginning of its name. Containers ignore both:
	// their home is a tmpfs.
	HomeRoot   string
	HomePrefix string
	// WorkDir is a directory whose owner the sandbox runs as when the front
	// end is root, and whose writability it reports.
	WorkDir    string
	Limits     Limits
	Grace      time.Duration // TERM to KILL
	Lifeline   time.Duration // silence on the stream that ends the sandbox
	OCIRuntime string
}

// Mount is a host directory or file that the sandbox sees.
type Mount struct {
	Path string // the same inside as outside
	// Source is where the engine finds it when that is not Path: a front end in
	// a container sees paths that the engine's machine does not have.
	Source   string
	ReadOnly bool // recursively
}

// Limits bounds a sandbox's use of its machine.
type Limits struct {
	Memory int64   // bytes
	CPUs   float64 // cores
	PIDs   int64
}

// Runtime makes sandboxes. It is deliberately narrow, so that a third one (a
// pod on a cluster) can join without a change above it.
type Runtime interface {
	// Name is docker or local.
	Name() string
	// Start makes the sandbox of spec and starts its init. The context bounds
	// the start only.
	Start(ctx context.Context, spec Spec) (Instance, error)
	// Environ is what a command gets before the provider adds to it.
	Environ(spec Spec) []string
	// List is what runs now and carries our marks.
	List(ctx context.Context) ([]Listed, error)
	// Sweep removes what carries our marks and cannot remove itself, and
	// returns a line for each. With dryRun it only returns the lines.
	Sweep(ctx context.Context, dryRun bool) ([]string, error)
}

// Listed is a sandbox as List reports it.
type Listed struct {
	ID       string // the runtime's: a container's id, or a pid
	Sandbox  string // Spec.ID
	Provider string // empty where the runtime does not know it
	Instance string // the front end, for display
	Image    string
	State    string    // running, created, exited …
	User     string    // uid:gid of its commands
	Created  time.Time // zero where the runtime does not know it
}

// Instance is a started sandbox as its runtime sees it: the stream to its
// init, and its end.
type Instance interface {
	// ReadWriteCloser is the stream. Closing it is the lifeline's end.
	io.ReadWriteCloser
	// ID names it to the runtime (a container id, a pid).
	ID() string
	// Diagnostics is the tail of what init itself wrote to its stderr.
	Diagnostics() string
	// Destroy ends everything in the sandbox and returns when it is verified
	// gone. It may be called more than once.
	Destroy(ctx context.Context) error
}
