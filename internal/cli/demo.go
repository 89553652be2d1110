package cli

import (
	"os"

	"github.com/spf13/cobra"

	"mcpagents/internal/tools/demo"
)

func demoCommand(status *int) *cobra.Command {
	codex := &cobra.Command{
		Use: "demo", Short: "run a Codex turn against the scripted model and show what happens", Hidden: true, Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			*status = demo.Run(cmd.Context(), os.Stdout, os.Getenv("MCP_AGENTS_RUNTIME"))
		},
	}
	codex.AddCommand(&cobra.Command{
		Use: "browser", Short: "look at a page of this machine with a browser in a container", Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) { *status = demo.RunBrowser(cmd.Context(), os.Stdout) },
	})
	return codex
}
