package oneshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"mcpagents/internal/credentials"
	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/wire"
	"mcpagents/internal/selinux"
	"mcpagents/internal/trust"
)

const (
	// openTimeout bounds the start of a sandbox: a loaded engine takes seconds.
	openTimeout = 60 * time.Second
	// closeTime is what the end of a sandbox may take beyond its grace.
	closeTime = 20 * time.Second
)

// Launcher starts turns in sandboxes of one runtime. Its fields do not change
// after the first start.
type Launcher struct {
	Runtime sandbox.Runtime
	// Spec is the sandbox without its mounts.
	Spec sandbox.Spec
	// Env names variables of the front end that the CLI gets.
	Env []string
	// Trust holds further certificate authorities; nil means none.
	Trust *trust.Authorities
	// Machine is the root of this machine's file system; nil means /.
	Machine fs.FS
	Log     *slog.Logger
}

// Command is what a turn runs.
type Command struct {
	Argv []string
	// NoInput gives the command an input that is at its end.
	NoInput bool
	// PTY gives the command a terminal of this size instead of pipes.
	PTY *wire.Resize
	// Dir is where the command starts; empty means a fresh directory that
	// goes with the turn and whose name begins with TempPrefix.
	Dir        string
	TempPrefix string
	// Env is added to what every command gets, for a sandbox whose login files
	// are in files.
	Env func(files string) []string
	// Mounts are what the sandbox sees, and WorkDir is whose owner it runs as.
	Mounts  []sandbox.Mount
	WorkDir string
	// Login and Files go into the sandbox. The credential is written back when
	// the CLI changed it; the turn releases the snapshot.
	Login      *credentials.Snapshot
	Credential string
	Files      []credentials.File
	// LoginPatience is how long a command may be silent after it printed where
	// to log in; 0 means for ever.
	LoginPatience time.Duration
	// Take gives the sandbox; nil makes a new one.
	Take func(context.Context, sandbox.Spec) (*sandbox.Sandbox, error)
}

// StartError says that a command could not be started.
type StartError struct{ Err error }

func (e *StartError) Error() string { return e.Err.Error() }
func (e *StartError) Unwrap() error { return e.Err }

// DirError says that the fresh directory could not be made.
type DirError struct{ Err error }

func (e *DirError) Error() string { return e.Err.Error() }
func (e *DirError) Unwrap() error { return e.Err }

// Turn is a running command.
type Turn struct {
	*sandbox.Process
	box     *sandbox.Sandbox
	grace   time.Duration
	release func()
	tempDir string // of the local runtime: it is on this machine
}

// SpecOf is the sandbox of a command.
func (l *Launcher) SpecOf(mounts []sandbox.Mount, workDir string) sandbox.Spec {
	spec := l.Spec
	spec.Mounts, spec.WorkDir = append([]sandbox.Mount(nil), mounts...), workDir
	if l.Trust != nil {
		spec.Mounts = append(spec.Mounts, l.Trust.Mount())
	}
	return spec
}

// Open makes a sandbox.
func (l *Launcher) Open(ctx context.Context, spec sandbox.Spec) (*sandbox.Sandbox, error) {
	return sandbox.Open(ctx, l.Runtime, spec, l.Log)
}

// Start starts a command. When it fails nothing is left; the error is a
// *StartError or a *DirError, or the context's cause.
func (l *Launcher) Start(ctx context.Context, c Command) (*Turn, error) {
	opening, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	release := func() {}
	if c.Login != nil {
		release = c.Login.Release
	}
	take := c.Take
	if take == nil {
		take = l.Open
	}
	box, err := take(opening, l.SpecOf(c.Mounts, c.WorkDir))
	if err != nil {
		release()
		return nil, l.failed(ctx, &StartError{err})
	}
	t := &Turn{box: box, grace: l.Spec.Grace, release: release}
	if err := l.spawn(opening, t, c); err != nil {
		if closeErr := t.Close(ctx); closeErr != nil {
			l.Log.Warn("a sandbox could not be removed", "error", closeErr)
		}
		return nil, l.failed(ctx, err)
	}
	return t, nil
}

// failed prefers the reason why nobody waits any more.
func (l *Launcher) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (l *Launcher) spawn(ctx context.Context, t *Turn, c Command) error {
	files := c.Files
	if c.Login != nil {
		files = append(c.Login.Files(), files...)
	}
	for _, f := range files {
		if err := t.box.PutFile(wire.File{Name: f.Name, Data: f.Data}); err != nil {
			return &StartError{fmt.Errorf("put %s into the sandbox: %w", f.Name, err)}
		}
	}
	env := l.environ(t.box, c)
	if l.Trust != nil {
		if err := l.Trust.Install(ctx, t.box, env); err != nil {
			return &StartError{err}
		}
	}
	dir := c.Dir
	if dir == "" {
		made, err := l.tempDir(ctx, t, env, c.TempPrefix)
		if err != nil {
			return &DirError{err}
		}
		dir = made
	}
	command := sandbox.Command{Argv: c.Argv, Env: env, Dir: dir, Stdin: !c.NoInput, PTY: c.PTY}
	if c.Login != nil {
		command.Watch = []string{c.Credential}
		command.Changed = func(f wire.Collected) { c.Login.Rotated(f.Name, f.Data, l.Log) }
	}
	var err error
	if t.Process, err = t.box.Spawn(ctx, command); err != nil {
		return &StartError{fmt.Errorf("%w%s", err, selinux.Explain(cmp.Or(l.Machine, selinux.Machine()), l.Runtime.Name(), c.WorkDir, err))}
	}
	return nil
}

// tempDir makes the fresh directory as a command of the sandbox, so that it is
// where the sandbox's temporary files are.
func (l *Launcher) tempDir(ctx context.Context, t *Turn, env []string, prefix string) (string, error) {
	out, err := t.box.Run(ctx, sandbox.Command{
		Argv: []string{"sh", "-c", `mktemp -d "${TMPDIR:-/tmp}/$1XXXXXXXX"`, "sh", prefix}, Env: env, Dir: "/",
	})
	if err != nil {
		return "", err
	}
	if out.Exit.Code != 0 {
		return "", errors.New(strings.TrimSpace(string(out.Stderr)))
	}
	dir := strings.TrimSpace(string(out.Stdout))
	if l.Runtime.Name() == "local" {
		t.tempDir = dir
	}
	return dir, nil
}

func (l *Launcher) environ(box *sandbox.Sandbox, c Command) []string {
	env := l.Runtime.Environ(l.Spec)
	if c.PTY == nil { // what it prints is read by programs
		env = append(env, "NO_COLOR=1")
	}
	if c.Env != nil {
		env = append(env, c.Env(box.Welcome().FilesDir)...)
	}
	if l.Trust != nil {
		env = append(env, l.Trust.Environ(box.Welcome().Home)...)
	}
	for _, name := range l.Env {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return lastOfEach(env)
}

// lastOfEach drops what a later variable of the same name replaces: of two,
// programs take the first.
func lastOfEach(env []string) []string {
	seen := map[string]bool{}
	var kept []string
	for _, kv := range slices.Backward(env) {
		name, _, _ := strings.Cut(kv, "=")
		if !seen[name] {
			seen[name] = true
			kept = append(kept, kv)
		}
	}
	slices.Reverse(kept)
	return kept
}

// Kill ends everything in the sandbox at once.
func (t *Turn) Kill() { _ = t.Signal(9, true) }

// Close destroys the sandbox and returns nil once it is verified gone, however
// the context ends: what is left of a turn is never anybody's choice.
func (t *Turn) Close(ctx context.Context) error {
	defer t.release()
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.grace+closeTime)
	defer cancel()
	if t.Process != nil && !isDone(t.Done()) {
		t.Discard()
	}
	err := t.box.Close(clean)
	if t.tempDir != "" {
		err = errors.Join(err, os.RemoveAll(t.tempDir))
	}
	return err
}
