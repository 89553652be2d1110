package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"mcpagents/internal/config"
	"mcpagents/internal/provider/claude"
	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/wire"
	"mcpagents/internal/terminal"
)

// leaveTime bounds the end of a shell's sandbox beyond the grace.
const leaveTime = 20 * time.Second

// startShell starts a command as a provider's calls are started.
type startShell func(ctx context.Context, argv []string, pty *wire.Resize) (*sandbox.Process, func(context.Context) error, error)

// Shell runs a command on the terminal of this process in a sandbox like the one
// that a call of the provider gets. The status is the command's.
func Shell(ctx context.Context, opts config.Options, argv []string, log *slog.Logger) (status int, err error) {
	start, rt, err := shellOf(opts, log)
	if err != nil {
		return 0, err
	}
	if c, ok := rt.(io.Closer); ok {
		defer c.Close()
	}
	user := terminal.Standard()
	size := user.Size()
	proc, leave, err := start(ctx, argv, size)
	if err != nil {
		return 0, err
	}
	defer func() {
		leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), opts.Sandbox.StopGrace+leaveTime)
		defer cancel()
		if closeErr := leave(leaving); err == nil {
			err = closeErr
		}
	}()
	return terminal.Attach(ctx, proc, user, size != nil)
}

func shellOf(opts config.Options, log *slog.Logger) (startShell, sandbox.Runtime, error) {
	switch opts.Provider {
	case config.ProviderCodex:
		l, rt, err := codexLauncher(opts, log)
		if err != nil {
			return nil, nil, err
		}
		l.NeedLogin = false // who only looks around needs none
		return l.Shell, rt, nil
	case config.ProviderClaude:
		opts.Sandbox.Warm = 0
		l, _, err := turnLauncher(opts, log)
		if err != nil {
			return nil, nil, err
		}
		config, err := claudeConfig(opts, l, nil, log)
		if err != nil {
			return nil, nil, err
		}
		p := claude.New(config)
		return func(ctx context.Context, argv []string, pty *wire.Resize) (*sandbox.Process, func(context.Context) error, error) {
			turn, err := p.Shell(ctx, argv, pty)
			if err != nil {
				return nil, nil, err
			}
			return turn.Process, turn.Close, nil
		}, l.Runtime, nil
	}
	return nil, nil, fmt.Errorf("there is no shell for provider %s: use codex or claude", opts.Provider)
}
