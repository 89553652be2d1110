package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"mcpagents/internal/config"
	"mcpagents/internal/credentials"
	"mcpagents/internal/mcp/stdio"
	"mcpagents/internal/mcp/toolserver"
	"mcpagents/internal/provider/claude"
	"mcpagents/internal/provider/gemini"
	"mcpagents/internal/provider/oneshot"
	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/docker"
	"mcpagents/internal/sandbox/local"
	"mcpagents/internal/sandbox/pool"
	"mcpagents/internal/trust"
	"mcpagents/internal/version"
	"mcpagents/internal/workspace"
)

// shutdownTimeout bounds the end of jobs when the client has left. What is
// still there then ends by its lifeline.
const shutdownTimeout = 3 * time.Second

// toolProvider is a provider whose tools are ours.
type toolProvider struct {
	tools   []toolserver.Tool
	prepare func()                // once a client is there; may be nil
	busy    func() bool           // work that outlives its call; may be nil
	close   func(context.Context) // may be nil
}

// serveTools runs the MCP server of a provider whose tools are ours.
func serveTools(opts config.Options, log *slog.Logger) (int, error) {
	l, fingerprint, err := turnLauncher(opts, log)
	var p toolProvider
	if err == nil && opts.Provider == config.ProviderClaude {
		p, err = claudeProvider(opts, l, fingerprint, log)
	} else if err == nil {
		p = geminiProvider(opts, l, log)
	}
	if err != nil {
		return 0, err
	}
	server, err := toolserver.New(toolserver.Config{
		Provider: string(opts.Provider), Name: "mcp-agents", Version: version.Version, Tools: p.tools, Initialized: p.prepare, Log: log,
		Stdio: stdio.Options{
			MaxMessage: int(opts.Server.MaxMessageBytes), IdleTimeout: opts.Server.StdioIdleTimeout, Busy: p.busy,
			Watchdog: stdio.Watchdog{Interval: opts.Server.ParentWatchdog},
		},
	})
	if err != nil {
		return 0, err
	}
	ctx, stop := UntilSignal()
	defer stop()
	if c, ok := l.Runtime.(io.Closer); ok {
		defer c.Close()
	}
	var sweeping sync.WaitGroup
	sweepCtx, endSweep := context.WithCancel(ctx)
	sweeping.Go(func() { sweep(sweepCtx, l.Runtime, log) })
	defer sweeping.Wait()
	defer endSweep()
	err = server.Serve(withSignalNames(ctx), os.Stdin, os.Stdout)
	if p.close != nil {
		closing, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		defer cancel()
		p.close(closing)
	}
	return exitStatus(err, log), nil
}

// namedSignal is a signal with the name under which users know it.
type namedSignal struct{ stdio.Signal }

func (s namedSignal) Error() string {
	switch s.Signal {
	case 1:
		return "SIGHUP"
	case 2:
		return "SIGINT"
	case 15:
		return "SIGTERM"
	}
	return s.Signal.Error()
}

func (s namedSignal) Unwrap() error { return s.Signal }

// withSignalNames is ctx with a signal's name in its cause, which is logged.
func withSignalNames(ctx context.Context) context.Context {
	named, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if s, ok := errors.AsType[stdio.Signal](cause); ok {
			cause = namedSignal{s}
		}
		cancel(cause)
	})
	return named
}

// exitStatus is that of a server which ended with err.
func exitStatus(err error, log *slog.Logger) int {
	if signal, ok := errors.AsType[stdio.Signal](err); ok {
		return signal.Status()
	}
	if err != nil {
		log.Error("server ended", "error", err)
		return 1
	}
	return 0
}

// turnLauncher puts together how turns are started. The fingerprint is nil
// where no spares are kept.
func turnLauncher(opts config.Options, log *slog.Logger) (*oneshot.Launcher, pool.Fingerprint, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, nil, fmt.Errorf("find the startup directory: %w", err)
	}
	l := &oneshot.Launcher{Spec: sandboxSpec(opts, dir), Env: opts.Sandbox.Env, Log: log}
	if l.Spec.Grace == 0 {
		l.Spec.Grace = sandbox.DefaultGrace
	}
	if opts.Sandbox.CAFile != "" {
		if l.Trust, err = trust.Load(opts.Sandbox.CAFile); err != nil {
			return nil, nil, fmt.Errorf("--ca_file: %w", err)
		}
	}
	if opts.Sandbox.Runtime == config.RuntimeLocal {
		rt, err := local.New()
		if err != nil {
			return nil, nil, err
		}
		l.Spec.HomeRoot, l.Spec.HomePrefix = privateHomes(), "mcp-agents-"+string(opts.Provider)+"-"
		rt.AddRoot(l.Spec.HomeRoot, l.Spec.HomePrefix)
		l.Runtime = rt
		log.Warn("the local runtime isolates no file system: the CLI and its commands see everything that this user sees, and " +
			"only its own flags keep a review from writing")
		return l, nil, nil
	}
	rt, err := docker.New(opts.Sandbox.DockerHost)
	if err != nil {
		return nil, nil, err
	}
	rt.RunsIn(opts.Sandbox.SelfContainer)
	l.Runtime = rt
	return l, rt.Fingerprint, nil
}

// privateHomes is where the local runtime makes private homes: in the user's
// own cache, because a review may not write to the workspace.
func privateHomes() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return filepath.Join(cache, "mcp-agents", "homes")
}

func claudeProvider(opts config.Options, l *oneshot.Launcher, fingerprint pool.Fingerprint, log *slog.Logger) (toolProvider, error) {
	config, err := claudeConfig(opts, l, fingerprint, log)
	if err != nil {
		return toolProvider{}, err
	}
	p := claude.New(config)
	return toolProvider{tools: p.Tools(), prepare: p.Prepare, busy: p.Busy, close: p.Close}, nil
}

func claudeConfig(opts config.Options, l *oneshot.Launcher, fingerprint pool.Fingerprint, log *slog.Logger) (claude.Config, error) {
	dir, err := os.Getwd()
	if err != nil {
		return claude.Config{}, fmt.Errorf("find the startup directory: %w", err)
	}
	source := credentials.Claude(opts.Sandbox.AuthSource)
	private := []string{source.Directory()}
	if rt, ok := l.Runtime.(*docker.Runtime); ok {
		private = append(private, rt.Sockets()...)
	}
	roots, rootsErr := resolveRoots(opts, dir, private)
	if _, ok := errors.AsType[*workspace.RootError](rootsErr); ok {
		return claude.Config{}, rootsErr
	}
	l.Spec.FilesDir = ".claude"
	return claude.Config{
		Launcher: l, Roots: roots, RootsErr: rootsErr, ReadOnly: opts.Sandbox.Access == config.AccessReadOnly,
		TrustWorkspace: opts.Claude.TrustWorkspace, Model: opts.Claude.Model, Effort: opts.Claude.Effort,
		Login: source, BaseURL: opts.Sandbox.ModelBaseURL, Timeout: opts.Claude.Timeout, JobTimeout: opts.Claude.JobTimeout,
		MaxChars: int(opts.Server.MaxResultChars), Warm: int(opts.Sandbox.Warm), Fingerprint: fingerprint, Log: log,
	}, nil
}

func geminiProvider(opts config.Options, l *oneshot.Launcher, log *slog.Logger) toolProvider {
	_, contained := l.Runtime.(*docker.Runtime)
	if contained && l.Spec.User == "" && os.Geteuid() == 0 {
		l.Spec.User = "1000:1000" // there is no workspace whose owner it could be
	}
	p := gemini.New(gemini.Config{
		Launcher: l, NeedLogin: contained, Env: opts.Sandbox.Env, AuthSource: opts.Sandbox.AuthSource,
		Timeout: opts.Gemini.Timeout, MaxChars: int(opts.Server.MaxResultChars), Log: log,
	})
	return toolProvider{tools: p.Tools()}
}
