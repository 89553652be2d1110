package codex

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"mcpagents/internal/credentials"
	"mcpagents/internal/mcp/proxy"
	"mcpagents/internal/provider/codex/config"
	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/wire"
	"mcpagents/internal/selinux"
	"mcpagents/internal/trust"
	"mcpagents/internal/workspace"
)

// openTimeout bounds the start of a sandbox: a loaded engine takes seconds.
const openTimeout = 60 * time.Second

// Sandboxed launches Codex in sandboxes of a runtime. It is used by one bridge,
// one launch after another.
type Sandboxed struct {
	Runtime sandbox.Runtime
	// Spec is the sandbox without its mounts, which follow from Roots.
	Spec sandbox.Spec
	// Roots are the workspaces, or RootsErr is why there are none.
	Roots    workspace.Roots
	RootsErr error
	ReadOnly bool // mount the workspaces read-only
	// Dir is where Codex starts when it lies in a root.
	Dir string
	// Settings is the generated configuration, without the version's gate.
	Settings config.Config
	Login    credentials.Source
	// NeedLogin refuses a launch without a login, before a sandbox is made.
	NeedLogin bool
	// Env names variables of the front end that Codex gets.
	Env []string
	// Trust holds further certificate authorities; nil means none.
	Trust *trust.Authorities
	// CLIVersion finds out what will run, such as "codex-cli 0.153.4", and
	// fails when it cannot run at all.
	CLIVersion func(context.Context) (string, error)
	// Preflight checks Codex's own sandbox before the first launch.
	Preflight bool
	// PreflightKey names all that the preflight's result depends on, so that a
	// pass is remembered between front ends; nil remembers nothing.
	PreflightKey func(context.Context) (string, error)
	// Describe, if set, is logged with the version once Codex runs.
	Describe func(version string, gate config.Gate) string
	// Machine is the root of this machine's file system; nil means /.
	Machine fs.FS
	Log     *slog.Logger

	checked bool // the preflight passed
}

// Launch starts a sandbox with Codex's server in it. It may first wait for
// another sandbox to refresh the login, as login.Acquire says.
func (s *Sandboxed) Launch(ctx context.Context) (*Child, error) {
	if s.RootsErr != nil {
		return nil, &LaunchError{Text: s.RootsErr.Error()}
	}
	snapshot, err := s.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	child, err := s.open(ctx, snapshot)
	if err != nil {
		snapshot.Release()
	}
	return child, err
}

// open makes the sandbox and starts the server. The child releases the snapshot.
func (s *Sandboxed) open(ctx context.Context, snapshot *credentials.Snapshot) (*Child, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	box, output, err := s.openBox(ctx)
	if err != nil {
		return nil, &LaunchError{Text: err.Error()}
	}
	version, known := config.ParseVersion(output)
	child, err := s.start(ctx, box, snapshot, config.GateOf(version, known))
	if err != nil {
		s.discard(ctx, box)
		return nil, err
	}
	if known {
		child.Version = version.String()
	}
	child.Agents = bool(config.GateOf(version, known))
	if s.Describe != nil {
		s.Log.Info(s.Describe(child.Version, config.GateOf(version, known)))
	}
	return child, nil
}

// openBox opens the sandbox while it finds out the version, which on this
// machine takes a run of Codex. A version's error comes first: it is the reason
// that a user can remedy.
func (s *Sandboxed) openBox(ctx context.Context) (*sandbox.Sandbox, string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var output string
	var versionErr error
	var asking sync.WaitGroup
	asking.Go(func() {
		if output, versionErr = s.CLIVersion(ctx); versionErr != nil {
			cancel() // the sandbox would be for nothing
		}
	})
	box, err := sandbox.Open(ctx, s.Runtime, s.spec(), s.Log)
	asking.Wait()
	switch {
	case versionErr == nil:
	case box != nil:
		s.discard(ctx, box)
		box = nil
	default:
		s.Log.Debug("the sandbox was not opened", "error", err)
	}
	return box, output, cmp.Or(versionErr, err)
}

// discard closes a sandbox in which nothing will run.
func (s *Sandboxed) discard(ctx context.Context, box *sandbox.Sandbox) {
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), proxy.CloseTime)
	defer cancel()
	if err := box.Close(clean); err != nil {
		s.Log.Warn("a sandbox could not be removed", "error", err)
	}
}

func (s *Sandboxed) snapshot(ctx context.Context) (*credentials.Snapshot, error) {
	snapshot, err := credentials.Acquire(ctx, s.Login, s.Log)
	if err != nil {
		return nil, &LaunchError{Text: err.Error()}
	}
	for _, err := range snapshot.Skipped() {
		s.Log.Debug("a login file was not copied", "error", err)
	}
	if err := snapshot.Missing(); err != nil && s.NeedLogin {
		snapshot.Release()
		return nil, &LaunchError{Text: err.Error()}
	}
	return snapshot, nil
}

// spec adds the mounts: every root, and a linked worktree's git directory,
// which is said.
func (s *Sandboxed) spec() sandbox.Spec {
	spec := s.Spec
	spec.WorkDir = s.Roots.Default()
	spec.Mounts = nil
	for _, root := range s.Roots.Dirs() {
		for _, dir := range workspace.Mounts(root, s.Log) {
			spec.Mounts = append(spec.Mounts, sandbox.Mount{Path: dir, ReadOnly: s.ReadOnly})
		}
	}
	if s.Trust != nil {
		spec.Mounts = append(spec.Mounts, s.Trust.Mount())
	}
	return spec
}

// furnish puts the login, the configuration and the authorities in.
func (s *Sandboxed) furnish(ctx context.Context, box *sandbox.Sandbox, snapshot *credentials.Snapshot, gate config.Gate) error {
	settings := s.Settings
	settings.AgentsGate = gate
	files := []wire.File{{Name: "config.toml", Data: settings.TOML()}}
	for _, f := range snapshot.Files() {
		files = append(files, wire.File{Name: f.Name, Data: f.Data})
	}
	for _, f := range files {
		if err := box.PutFile(f); err != nil {
			return &LaunchError{Text: fmt.Sprintf("put %s into the sandbox: %v", f.Name, err)}
		}
	}
	if s.Trust != nil {
		if err := s.Trust.Install(ctx, box, s.Runtime.Environ(s.Spec)); err != nil {
			return &LaunchError{Text: err.Error()}
		}
	}
	return nil
}

// start furnishes the sandbox and starts the server.
func (s *Sandboxed) start(ctx context.Context, box *sandbox.Sandbox, snapshot *credentials.Snapshot, gate config.Gate) (*Child, error) {
	s.sayWritable(box)
	if err := s.furnish(ctx, box, snapshot, gate); err != nil {
		return nil, err
	}
	if err := s.preflight(ctx, box); err != nil {
		return nil, err
	}
	proc, err := box.Spawn(ctx, sandbox.Command{
		Argv: []string{"codex", "mcp-server"}, Env: s.environ(box), Dir: s.dir(), Stdin: true,
		Watch:   []string{s.Login.Credential},
		Changed: func(c wire.Collected) { snapshot.Rotated(c.Name, c.Data, s.Log) },
	})
	if err != nil {
		return nil, &LaunchError{Text: err.Error() + s.deniedHint(err)}
	}
	return &Child{Invalidate: snapshot.Invalidate, Process: proxy.Process{
		Stdin: proc.Stdin(), Stdout: proc.Stdout(), Stderr: proc.Stderr(), Wait: proc.Wait,
		Close: func(ctx context.Context) error {
			defer snapshot.Release()
			_, stopErr := proc.Stop(ctx)
			if lost, ok := errors.AsType[*sandbox.LostError](stopErr); ok {
				s.Log.Debug("the sandbox was gone before its end", "error", lost)
			}
			return box.Close(ctx)
		}}}, nil
}

func (s *Sandboxed) dir() string {
	if _, ok := s.Roots.Holding(s.Dir); ok {
		return s.Dir
	}
	return s.Roots.Default()
}

func (s *Sandboxed) environ(box *sandbox.Sandbox) []string {
	env := append(s.Runtime.Environ(s.Spec), "CODEX_HOME="+box.Welcome().FilesDir)
	if s.Trust != nil {
		env = append(env, s.Trust.Environ(box.Welcome().Home)...)
	}
	for _, name := range append(s.Login.KeyVariables[:len(s.Login.KeyVariables):len(s.Login.KeyVariables)], s.Env...) {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// sayWritable warns when the sandbox's user cannot write the workspace.
func (s *Sandboxed) sayWritable(box *sandbox.Sandbox) {
	w, hint := box.Welcome(), ""
	if s.Runtime.Name() == "docker" {
		hint = selinux.Hint(s.machine(), s.Roots.Default())
	}
	for dir, ok := range w.Writable {
		if ok || s.ReadOnly {
			continue
		}
		s.Log.Warn(fmt.Sprintf("the sandbox runs as %d:%d and cannot write the workspace: writing turns will fail; "+
			"let its owner start mcp-agents, or name another user with --user%s", w.UID, w.GID, hint))
		s.Log.Debug("not writable", "dir", dir)
	}
}

// deniedHint explains a command that could not start in the workspace.
func (s *Sandboxed) deniedHint(err error) string {
	return selinux.Explain(s.machine(), s.Runtime.Name(), s.Roots.Default(), err)
}

func (s *Sandboxed) machine() fs.FS { return cmp.Or(s.Machine, selinux.Machine()) }
