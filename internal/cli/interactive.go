package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"mcpagents/internal/app"
	"mcpagents/internal/config"
	"mcpagents/internal/mcp/stdio"
)

func loginCommand(status *int) *cobra.Command {
	var server []string
	cmd := &cobra.Command{
		Use: "login [-- ARGUMENT...]", Short: "log in with a CLI that is only in its image",
		Long: "Runs the login of the CLI of --provider codex or claude in a sandbox of its own, on your terminal, and stores the login\n" +
			"that it makes where the CLI on this machine would. codex shows a code for another device unless arguments of\n" +
			"`codex login` are given. Every flag of the server (mcp-agents --help) can be given here as well.",
		Example: "  mcp-agents login --provider claude\n  printenv OPENAI_API_KEY | mcp-agents login --provider codex -- --with-api-key",
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, err := config.Parse(server, os.LookupEnv)
			if err != nil {
				return err
			}
			how, err := app.LoginOf(opts, args)
			if err != nil {
				return err
			}
			*status, err = app.Login(cmd.Context(), opts, how, quietLogger(opts))
			reportEnd(cmd.Context(), status, err)
			return nil
		},
	}
	passServerFlags(cmd.Flags(), &server)
	return cmd
}

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
			*status, err = app.Shell(cmd.Context(), opts, args, quietLogger(opts))
			reportEnd(cmd.Context(), status, err)
			return nil
		},
	}
	passServerFlags(cmd.Flags(), &server)
	return cmd
}

// quietLogger logs warnings and errors only: the terminal is the command's.
func quietLogger(opts config.Options) *slog.Logger {
	return app.NewLogger(os.Stderr, max(opts.Server.LogLevel, slog.LevelWarn), opts.Server.LogFormat)
}

// reportEnd prints the error and sets the exit status that follows from it.
func reportEnd(ctx context.Context, status *int, err error) {
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "error:", err)
	*status = exitFail
	if signal, ok := context.Cause(ctx).(stdio.Signal); ok {
		*status = signal.Status()
	}
}
