package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"mcpagents/internal/app"
	"mcpagents/internal/config"
	"mcpagents/internal/sandbox"
	"mcpagents/internal/scripted/model"
)

// subcommand runs a subcommand and returns the exit status.
func subcommand(args []string) int {
	ctx, stop := app.UntilSignal()
	defer stop()
	status := exitOK
	root := rootCommand(&status)
	root.SetArgs(args)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return exitUsage
	}
	return status
}

// documented lists the subcommands that the help names.
func documented() []config.Command {
	var list []config.Command
	for _, c := range rootCommand(new(int)).Commands() {
		if !c.Hidden && c.Name() != "help" && c.Name() != "completion" {
			list = append(list, config.Command{Name: c.Name(), Short: c.Short})
		}
	}
	return list
}

func rootCommand(status *int) *cobra.Command {
	root := &cobra.Command{
		Use: "mcp-agents", Short: "run coding agents in disposable sandboxes behind MCP",
		SilenceUsage: true, SilenceErrors: true,
		Long: "Without a subcommand mcp-agents is an MCP server on stdin and stdout: see mcp-agents --help.",
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(doctorCommand(status), imagesCommand(status), setupCommand(status), callCommand(status), loginCommand(status), shellCommand(status), psCommand(status),
		gcCommand(status), leaseCommand(status), modelCommand(status), demoCommand(status))
	return root
}

func modelCommand(status *int) *cobra.Command {
	return &cobra.Command{
		Use: "model", Short: "serve a scripted model on loopback, for demos and tests", Hidden: true, DisableFlagParsing: true,
		Run: func(cmd *cobra.Command, args []string) {
			*status = model.Run(cmd.Context(), args, os.Stdout, os.Stderr)
		},
	}
}

func gcCommand(status *int) *cobra.Command {
	var dryRun bool
	var runtime, host string
	cmd := &cobra.Command{
		Use: "gc", Short: "remove what sandboxes left that could not end themselves", Args: cobra.NoArgs,
		Long: "Removes containers of ours that were created, exited or dead more than two minutes ago; with --runtime local,\n" +
			"processes and private homes of sandboxes whose init was killed (of codex:\n" +
			"those started in this directory). Running sandboxes are never touched.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			rt, err := app.RuntimeByName(runtime, host)
			if err != nil {
				return err
			}
			*status = collect(cmd.Context(), rt, dryRun)
			return nil
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only print what would be removed")
	cmd.Flags().StringVar(&runtime, "runtime", "docker", "docker or local")
	cmd.Flags().StringVar(&host, "docker-host", "", "address of the engine")
	return cmd
}

func collect(ctx context.Context, rt sandbox.Runtime, dryRun bool) int {
	lines, err := rt.Sweep(ctx, dryRun)
	for _, line := range lines {
		fmt.Println(line)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return exitFail
	}
	return exitOK
}
