package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"mcpagents/internal/config"
	"mcpagents/internal/credentials"
	"mcpagents/internal/mcp/stdio"
	"mcpagents/internal/provider/codex"
	codexconfig "mcpagents/internal/provider/codex/config"
	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/docker"
	"mcpagents/internal/sandbox/local"
	"mcpagents/internal/trust"
	"mcpagents/internal/version"
	"mcpagents/internal/workspace"
)

// homePrefix begins the names of Codex's private homes on disk.
const homePrefix = "mcp-agents-codex-"

// versionTimeout bounds `codex --version` on this machine.
const versionTimeout = 3 * time.Second

func serveCodex(opts config.Options, log *slog.Logger) (int, error) {
	launcher, rt, err := codexLauncher(opts, log)
	if err != nil {
		return 0, err
	}
	ctx, stop := UntilSignal()
	defer stop()
	if c, ok := rt.(io.Closer); ok {
		defer c.Close()
	}
	var sweeping sync.WaitGroup
	sweepCtx, endSweep := context.WithCancel(ctx)
	sweeping.Go(func() { sweep(sweepCtx, rt, log) })
	defer sweeping.Wait()
	defer endSweep()
	return codex.Run(ctx, codex.Config{
		Launch:           launcher.Launch,
		Ready:            func() { log.Info("ready (provider: " + string(opts.Provider) + ")") },
		Version:          version.Version,
		Models:           opts.Codex.Models,
		Goal:             opts.Codex.Goal,
		CheckCwd:         checkCwd(launcher),
		HandshakeTimeout: opts.Server.HandshakeTimeout,
		ClientGoneGrace:  opts.Codex.ClientGoneGrace,
		ClientIdle:       opts.Server.StdioIdleTimeout,
		Watchdog:         stdio.Watchdog{Interval: opts.Server.ParentWatchdog},
		Times:            codexTimes(opts.Codex),
		MaxMessage:       int(opts.Server.MaxMessageBytes),
		Log:              log,
	}, os.Stdin, os.Stdout), nil
}

func codexTimes(c config.Codex) codex.Times {
	return codex.Times{Idle: c.IdleTimeout, Hard: c.Timeout, CancelGrace: c.CancelGrace, TerminalGrace: c.TerminalGrace,
		FlushStall: c.FlushStall, StatusInterval: c.StatusInterval, ProgressInterval: c.ProgressInterval, WaitInterval: c.WaitInterval}
}

// codexLauncher puts together how Codex is started.
func codexLauncher(opts config.Options, log *slog.Logger) (*codex.Sandboxed, sandbox.Runtime, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, nil, fmt.Errorf("find the startup directory: %w", err)
	}
	rt, err := docker.New(opts.Sandbox.DockerHost)
	if err != nil {
		return nil, nil, err
	}
	source := credentials.Codex(opts.Sandbox.AuthSource)
	roots, rootsErr := resolveRoots(opts, dir, append(rt.Sockets(), source.Directory()))
	var unusable *workspace.RootError
	if errors.As(rootsErr, &unusable) {
		return nil, nil, rootsErr
	}
	c := opts.Codex
	l := &codex.Sandboxed{
		Roots: roots, RootsErr: rootsErr, ReadOnly: opts.Sandbox.Access == config.AccessReadOnly, Dir: dir,
		Login: source, NeedLogin: opts.Sandbox.ModelBaseURL == "", Env: opts.Sandbox.Env, Log: log,
		Spec: sandboxSpec(opts, dir),
	}
	l.Settings = codexconfig.Config{Model: c.Model, ReasoningEffort: c.ReasoningEffort, ApprovalPolicy: c.ApprovalPolicy,
		SandboxMode: c.SandboxMode, WorkspaceNetwork: c.WorkspaceNetwork, BaseURL: opts.Sandbox.ModelBaseURL}
	if l.Settings.Fast, err = codexconfig.ReadFastOptIn(filepath.Join(source.Directory(), "config.toml")); err != nil {
		log.Warn("failed to read source Codex Fast-mode config", "error", err)
	}
	l.Describe = func(version string, gate codexconfig.Gate) string { return describe(opts, l.Settings, version, gate) }
	if opts.Sandbox.CAFile != "" {
		if l.Trust, err = trust.Load(opts.Sandbox.CAFile); err != nil {
			return nil, nil, fmt.Errorf("--ca_file: %w", err)
		}
	}
	if opts.Sandbox.Runtime == config.RuntimeLocal {
		return localLauncher(l, log)
	}
	rt.RunsIn(opts.Sandbox.SelfContainer)
	l.Runtime, l.Preflight, l.Spec.FilesDir = rt, true, ".codex"
	l.PreflightKey = func(ctx context.Context) (string, error) {
		spec := l.Spec
		spec.WorkDir = l.Roots.Default()
		return rt.ConfinementKey(ctx, spec)
	}
	l.CLIVersion = func(ctx context.Context) (string, error) {
		image, err := rt.Inspect(ctx, l.Spec.Image)
		return image.CLIVersion, err
	}
	return l, rt, nil
}

func localLauncher(l *codex.Sandboxed, log *slog.Logger) (*codex.Sandboxed, sandbox.Runtime, error) {
	rt, err := local.New()
	if err != nil {
		return nil, nil, err
	}
	rt.AddRoot(l.Spec.HomeRoot, l.Spec.HomePrefix)
	l.Runtime, l.CLIVersion = rt, localVersion
	log.Warn("the local runtime isolates no file system: Codex and its commands see everything that this user sees")
	return l, rt, nil
}

// localVersion asks the codex on PATH. One that does not answer in time still
// runs, as an unknown version.
func localVersion(ctx context.Context) (string, error) {
	path, err := exec.LookPath("codex")
	if err != nil {
		return "", errors.New("codex is not on PATH: install it (npm install -g @openai/codex@0.153.4), or use --runtime docker")
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", nil
	}
	return string(out), nil
}

// codexHomes is where the local runtime makes Codex's private homes.
func codexHomes(dir string) string { return filepath.Join(dir, "tmp", "codex-homes") }

// checkCwd judges the cwd argument. When there is no workspace at all the
// launch says why.
func checkCwd(l *codex.Sandboxed) func(string) string {
	return func(path string) string {
		if l.RootsErr != nil {
			return ""
		}
		_, err := l.Roots.Cwd(path)
		var fault *workspace.CwdError
		if errors.As(err, &fault) {
			return fault.Problem
		}
		return ""
	}
}

// describe is the line that says what was started. Its fields and their order
// are relied on.
func describe(opts config.Options, settings codexconfig.Config, version string, gate codexconfig.Gate) string {
	if version == "" {
		version = "unknown"
	}
	goal := "none"
	if opts.Codex.Goal != "" {
		goal = "set"
	}
	return fmt.Sprintf("passthrough: codex mcp-server (model=%s, reasoning_effort=%s, sandbox_mode=%s, approval_policy=%s, "+
		"workspace_network_access=%t, fast_mode_opt_in=%t, codex_version=%s, subagent_gate=%s, goal=%s, idle_timeout_ms=%d, "+
		"hard_timeout_ms=%d, isolated_home=true)", settings.Model, settings.ReasoningEffort, settings.SandboxMode,
		settings.ApprovalPolicy, settings.WorkspaceNetwork, settings.Fast, version, gate, goal,
		opts.Codex.IdleTimeout.Milliseconds(), opts.Codex.Timeout.Milliseconds())
}
