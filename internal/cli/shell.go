package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"mcpagents/internal/config"
	"mcpagents/internal/mcp/stdio"
	"mcpagents/internal/provider/claude"
	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/wire"
	"mcpagents/internal/terminal"
)

// leaveTime bounds the end of a shell's sandbox beyond the grace.
const leaveTime = 20 * time.Second

func shellCommand(status *int) *cobra.Command {
	var server []string
	cmd := &cobra.Command{
		Use: "shell [-- COMMAND...]", Short: "a shell, or a command, in a sandbox like the one that a call gets",
		Long: "Starts bash, or the command, where an agent of --provider codex or claude would work: with its mounts, limits, network\n" +
			"and a copy of the login. On a terminal the shell has a terminal, otherwise pipes. Every flag of the server\n" +
			"(mcp-agents --help) can be given here as well. The exit status is the command's.",
		Example: "  mcp-agents shell --provider codex --workspace_access ro\n  mcp-agents shell -- codex --version",
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, err := config.Parse(server, os.LookupEnv)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				args = []string{"bash"}
			}
			log := newLogger(os.Stderr, max(opts.Server.LogLevel, slog.LevelWarn), opts.Server.LogFormat)
			if *status, err = runShell(cmd.Context(), opts, args, log); err != nil {
				fmt.Fprintln(os.Stderr, "error:", err)
				*status = interrupted(cmd.Context(), exitFail)
			}
			return nil
		},
	}
	passServerFlags(cmd.Flags(), &server)
	return cmd
}

// interrupted is the exit status after a signal, or the other one.
func interrupted(ctx context.Context, otherwise int) int {
	if signal, ok := context.Cause(ctx).(stdio.Signal); ok {
		return signal.Status()
	}
	return otherwise
}

// startShell starts a command as a provider's calls are started.
type startShell func(ctx context.Context, argv []string, pty *wire.Resize) (*sandbox.Process, func(context.Context) error, error)

func runShell(ctx context.Context, opts config.Options, argv []string, log *slog.Logger) (status int, err error) {
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
