package claude

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpagents/internal/agent/job"
	"mcpagents/internal/credentials"
	"mcpagents/internal/mcp/toolserver"
	"mcpagents/internal/provider/oneshot"
	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/pool"
	"mcpagents/internal/workspace"
)

// Defaults of a Config.
const (
	DefaultTimeout    = 900 * time.Second
	DefaultJobTimeout = 7200 * time.Second
	DefaultTermAfter  = time.Second
	DefaultKillAfter  = time.Second
	DefaultMaxChars   = 40_000
	// DefaultFirstEvent is what a review has until the CLI says that it began,
	// which it does before it asks its model anything.
	DefaultFirstEvent = 2 * time.Minute
	// DefaultStatusWait is how long a status call waits that names no time.
	DefaultStatusWait = 10 * time.Second
)

// Config is what a Provider needs. Launcher and Roots are required.
type Config struct {
	Launcher *oneshot.Launcher
	// Roots are the workspaces, or RootsErr is why there are none.
	Roots    workspace.Roots
	RootsErr error
	ReadOnly bool // mount the workspace read-only for calls that wait, too
	// TrustWorkspace lets the workspace's own hooks, servers and settings work.
	TrustWorkspace bool

	Model, Effort string
	Login         credentials.Source
	// BaseURL is a gateway or scripted model in place of the vendor's endpoint,
	// empty for none. Behind one a login is not required.
	BaseURL string

	Timeout    time.Duration // of a call that waits
	JobTimeout time.Duration // of a background review, retries included
	// TermAfter and KillAfter are how long an interrupted review has until TERM,
	// and then until KILL.
	TermAfter, KillAfter time.Duration
	// FirstEvent bounds the time to a review's first event. One that waits for a
	// login, a terminal or the end of an input that it never gets says nothing,
	// and would be waited for until the deadline.
	FirstEvent time.Duration
	// MaxChars is the longest answer of a call that waits, in code points.
	MaxChars int

	// Warm is the number of spare sandboxes for reviews of the first root, and
	// Fingerprint tells whether one is still what it was made of; nil means none.
	Warm        int
	Fingerprint pool.Fingerprint

	// MaxActive, MaxRetained and Retention limit jobs; 0 means the defaults of
	// package job.
	MaxActive, MaxRetained int
	Retention              time.Duration

	Log *slog.Logger // nil means slog.Default
}

// Provider is the tools of Claude Code for one connection. Close must be called.
type Provider struct {
	cfg   Config
	log   *slog.Logger
	jobs  *jobs
	spare sync.Mutex // guards what follows
	pool  *pool.Pool
	kept  sandbox.Spec // what the spares are made of
	done  bool         // Prepare was called, or Close
}

// New returns a Provider.
func New(cfg Config) *Provider {
	cfg.Timeout = cmp.Or(cfg.Timeout, DefaultTimeout)
	cfg.JobTimeout = cmp.Or(cfg.JobTimeout, DefaultJobTimeout)
	cfg.TermAfter = cmp.Or(cfg.TermAfter, DefaultTermAfter)
	cfg.KillAfter = cmp.Or(cfg.KillAfter, DefaultKillAfter)
	cfg.FirstEvent = cmp.Or(cfg.FirstEvent, DefaultFirstEvent)
	cfg.MaxChars = cmp.Or(cfg.MaxChars, DefaultMaxChars)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	p := &Provider{cfg: cfg, log: cfg.Log}
	p.jobs = newJobs(p, job.Config{MaxActive: cfg.MaxActive, MaxRetained: cfg.MaxRetained, Retention: cfg.Retention})
	return p
}

// Tools are the tools in the order in which they are listed.
func (p *Provider) Tools() []toolserver.Tool {
	return append([]toolserver.Tool{toolserver.PingTool(), p.blockingTool()}, p.jobs.tools()...)
}

// Prepare makes the spare sandboxes. It does not wait for them.
func (p *Provider) Prepare() {
	p.spare.Lock()
	defer p.spare.Unlock()
	if p.done || p.cfg.Warm == 0 || p.cfg.Fingerprint == nil || p.cfg.RootsErr != nil {
		return
	}
	p.done = true
	l := p.cfg.Launcher
	root := p.firstRoot()
	p.kept = l.SpecOf(p.mounts(root, true), root)
	p.pool = pool.New(p.kept, p.cfg.Warm, l.Open, p.cfg.Fingerprint, p.log)
}

// Close ends the jobs and the spares and waits for them as long as ctx lives.
// What is still there then ends by its lifeline.
func (p *Provider) Close(ctx context.Context) {
	p.jobs.close(ctx)
	p.spare.Lock()
	p.done = true
	spares := p.pool
	p.spare.Unlock()
	if spares != nil {
		if err := spares.Close(ctx); err != nil {
			p.log.Debug("a spare sandbox could not be removed", "error", err)
		}
	}
}

func (p *Provider) firstRoot() string { return p.cfg.Roots.Dirs()[0] }

// takeSpare gives a spare sandbox for a review of the first root, or a new one
// when spares see something else (a worktree's git directory came since).
func (p *Provider) takeSpare(ctx context.Context, spec sandbox.Spec) (*sandbox.Sandbox, error) {
	p.spare.Lock()
	spares, same := p.pool, slices.Equal(p.kept.Mounts, spec.Mounts)
	p.spare.Unlock()
	if spares == nil || !same {
		return p.cfg.Launcher.Open(ctx, spec)
	}
	return spares.Take(ctx)
}

// mounts are a root, and the git directories that a linked worktree or a
// submodule uses.
func (p *Provider) mounts(root string, readOnly bool) []sandbox.Mount {
	var mounts []sandbox.Mount
	for _, dir := range workspace.Mounts(root, p.log) {
		mounts = append(mounts, sandbox.Mount{Path: dir, ReadOnly: readOnly})
	}
	return mounts
}

// command is a turn that starts in dir of a root. Its error is for the caller.
func (p *Provider) command(ctx context.Context, argv []string, dir, root string, readOnly bool) (oneshot.Command, error) {
	snapshot, config, err := p.login(ctx)
	if err != nil {
		return oneshot.Command{}, err
	}
	return oneshot.Command{
		Argv: argv, Dir: dir, Mounts: p.mounts(root, readOnly), WorkDir: root, Env: p.environ(snapshot, config.hasKey),
		Login: snapshot, Credential: p.cfg.Login.Credential, Files: []credentials.File{config.file},
	}, nil
}

// config is the user's configuration as far as a sandbox gets it.
type config struct {
	file   credentials.File
	hasKey bool
}

// login copies the login. The error says which login is missing, before any
// sandbox is made.
func (p *Provider) login(ctx context.Context) (*credentials.Snapshot, config, error) {
	var c config
	snapshot, err := credentials.Acquire(ctx, p.cfg.Login, p.log)
	if err != nil {
		return nil, c, err
	}
	if c.file, c.hasKey, err = credentials.ClaudeConfig(ctx, p.cfg.Login); err != nil {
		p.log.Debug("a login file was not copied", "error", err)
	}
	if err := p.missing(snapshot, c.hasKey); err != nil {
		snapshot.Release()
		return nil, c, err
	}
	return snapshot, c, nil
}

// loginIsThere says which login is missing.
func (p *Provider) loginIsThere(ctx context.Context) error {
	snapshot, err := credentials.Take(ctx, p.cfg.Login)
	if err != nil {
		return err
	}
	_, hasKey, _ := credentials.ClaudeConfig(ctx, p.cfg.Login) // its fault is logged at the start
	return p.missing(snapshot, hasKey)
}

// missing is why nobody is logged in, or nil.
func (p *Provider) missing(snapshot *credentials.Snapshot, hasKey bool) error {
	if hasKey || keyInEnvironment() || p.cfg.BaseURL != "" {
		return nil
	}
	return snapshot.Missing()
}

func keyInEnvironment() bool {
	for _, name := range credentials.ClaudeKeyVariables {
		if strings.TrimSpace(os.Getenv(name)) != "" {
			return true
		}
	}
	return false
}

// environ is what Claude Code gets beside the common environment.
func (p *Provider) environ(snapshot *credentials.Snapshot, hasKey bool) func(string) []string {
	return func(files string) []string {
		env := []string{
			"CLAUDE_CONFIG_DIR=" + files,
			// A sandbox lives for one turn: nothing to update, nobody to ask, and
			// without a network each try would cost time.
			"DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		}
		for _, name := range credentials.ClaudeKeyVariables {
			if v := os.Getenv(name); v != "" {
				env = append(env, name+"="+v)
			}
		}
		if p.cfg.BaseURL != "" {
			env = append(env, "ANTHROPIC_BASE_URL="+baseURL(p.cfg.BaseURL))
			if snapshot.Missing() != nil && !hasKey && !keyInEnvironment() {
				// A gateway may want none, but the CLI does not start without.
				env = append(env, "ANTHROPIC_AUTH_TOKEN=none")
			}
		}
		return env
	}
}

// baseURL is a base address as Claude Code takes it: it adds the version itself.
func baseURL(url string) string {
	return strings.TrimSuffix(strings.TrimRight(url, "/"), "/v1")
}

// hidden reports whether the workspace has settings that must not be read, and
// says so in the log.
func (p *Provider) hidden(dir, root string) bool {
	if p.cfg.TrustWorkspace || !hasSettings(dir, root) {
		return false
	}
	p.log.Warn("the workspace's own Claude Code settings and CLAUDE.md are not loaded: settings can run programs and send the " +
		"login elsewhere; --trust_workspace loads them")
	return true
}

// seconds is a duration in words for progress messages.
func seconds(d time.Duration) string { return fmt.Sprintf("%ds", int(d/time.Second)) }
