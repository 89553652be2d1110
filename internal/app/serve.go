package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"mcpagents/internal/config"
	"mcpagents/internal/mcp/stdio"
	"mcpagents/internal/provider/codex"
	codexconfig "mcpagents/internal/provider/codex/config"
	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/docker"
	"mcpagents/internal/workspace"
)

// Serve runs the MCP server of a provider on stdin and stdout until the client
// leaves or a signal comes, and returns the exit status. An error means that it
// did not start.
func Serve(opts config.Options) (int, error) {
	log := NewLogger(os.Stderr, opts.Server.LogLevel, opts.Server.LogFormat)
	slog.SetDefault(log)
	if err := supported(opts); err != nil {
		return 0, err
	}
	warnOfTerminal(os.Stdin, os.Stdout, log)
	switch opts.Provider {
	case config.ProviderBrowser:
		return serveBrowser(opts, log)
	case config.ProviderCodex:
		return serveCodex(opts, log)
	default:
		return serveTools(opts, log)
	}
}

// supported refuses what the flags promise and this version does not do, so
// that nothing is ignored in silence.
func supported(opts config.Options) error {
	if opts.Provider != config.ProviderClaude && opts.Sandbox.Warm > 0 {
		return fmt.Errorf("--warm is not part of this version for provider %s: leave it at 0", opts.Provider)
	}
	if opts.Provider != config.ProviderCodex {
		return nil
	}
	if err := codexconfig.ValidateApproval(opts.Codex.ApprovalPolicy); err != nil {
		return err
	}
	return codexconfig.ValidateSandbox(opts.Codex.SandboxMode)
}

// UntilSignal returns a context that ends with a stdio.Signal. A second signal
// ends the process at once: the sandboxes end by their lifelines.
func UntilSignal() (context.Context, func()) {
	// A closed stdout must be an error that is handled, not a death by SIGPIPE.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for first := true; ; first = false {
			select {
			case s := <-signals:
				n, _ := s.(syscall.Signal)
				if !first {
					os.Exit(stdio.Signal(n).Status())
				}
				cancel(stdio.Signal(n))
			case <-quit:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(quit)
		<-done
		cancel(nil)
	}
}

// resolveRoots resolves the workspaces. Private are paths that a default must
// not share.
func resolveRoots(opts config.Options, dir string, private []string) (workspace.Roots, error) {
	userHome, _ := os.UserHomeDir()
	roots, err := workspace.Resolve(opts.Sandbox.Workspaces, dir, userHome, private)
	if err == nil && opts.Sandbox.Runtime == config.RuntimeDocker {
		err = roots.Mountable()
	}
	return roots, err
}

func sandboxSpec(opts config.Options, dir string) sandbox.Spec {
	s := opts.Sandbox
	spec := sandbox.Spec{
		Provider: string(opts.Provider), Instance: fmt.Sprintf("%d", os.Getpid()), Image: s.Image, Network: s.Network,
		HomeRoot: codexHomes(dir), HomePrefix: homePrefix,
		Limits: sandbox.Limits{Memory: s.MemoryBytes, CPUs: float64(s.NanoCPUs) / 1e9, PIDs: s.PidsLimit},
		Grace:  s.StopGrace, Lifeline: s.LifelineTimeout, OCIRuntime: s.OCIRuntime,
	}
	if opts.Provider == config.ProviderCodex {
		spec.Syscalls = codex.Syscalls()
	}
	if spec.Image == "" {
		spec.Image = docker.DefaultImage(spec.Provider)
	}
	if s.User != nil {
		spec.User = fmt.Sprintf("%d:%d", s.User.UID, s.User.GID)
	}
	return spec
}

// sweep removes what earlier front ends could not.
func sweep(ctx context.Context, rt sandbox.Runtime, log *slog.Logger) {
	lines, err := rt.Sweep(ctx, false)
	for _, line := range lines {
		log.Info("swept " + line)
	}
	if err != nil && ctx.Err() == nil {
		log.Debug("sweep", "error", err)
	}
}
