package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"mcpagents/internal/setup"
)

func setupCommand(status *int) *cobra.Command {
	var req setup.Request
	var names []string
	for _, c := range setup.Clients() {
		names = append(names, c.Name)
	}
	cmd := &cobra.Command{
		Use: "setup CLIENT", Short: "write or remove the entry for an MCP client", Args: cobra.ExactArgs(1), ValidArgs: names,
		Long: "Adds the entry that starts mcp-agents to the configuration of an MCP client (" + strings.Join(names, ", ") + "),\n" +
			"or with --remove takes it out again. The rest of the file stays byte for byte as it is. Claude Code, Cursor, VS Code\n" +
			"and Gemini CLI get it in the project that you start this in, Codex in its config.toml.",
		RunE: func(_ *cobra.Command, args []string) error {
			req.Client = args[0]
			out, err := runSetup(req)
			var usage *setup.UsageError
			if errors.As(err, &usage) {
				return err
			}
			*status = reportSetup(req, out, err)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&req.Provider, "provider", "", "codex, claude, gemini or browser (default: claude for codex, else codex)")
	flags.BoolVar(&req.Docker, "docker", false, "an entry that runs mcp-agents by docker run -i")
	flags.BoolVar(&req.User, "user", false, "Claude Code: the user's .claude.json in place of the project's .mcp.json")
	flags.BoolVar(&req.Remove, "remove", false, "remove the entry")
	flags.BoolVar(&req.DryRun, "dry-run", false, "only print the change, as a unified diff")
	return cmd
}

func runSetup(req setup.Request) (setup.Outcome, error) {
	var err error
	if req.Dir, err = os.Getwd(); err != nil {
		return setup.Outcome{}, fmt.Errorf("find the project: %w", err)
	}
	if req.Home, err = os.UserHomeDir(); err != nil {
		return setup.Outcome{}, fmt.Errorf("find your home: %w", err)
	}
	if req.Binary, err = os.Executable(); err != nil {
		return setup.Outcome{}, fmt.Errorf("find this program: %w", err)
	}
	req.Getenv = os.Getenv
	return setup.Run(req)
}

func reportSetup(req setup.Request, out setup.Outcome, err error) int {
	for _, note := range out.Notes {
		fmt.Fprintln(os.Stderr, "note:", note)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return exitFail
	}
	if req.DryRun {
		_, _ = os.Stdout.Write(out.Diff)
		return exitOK
	}
	fmt.Printf("%s: %s: %s\n", out.Path, out.Entry, out.Action)
	return exitOK
}
