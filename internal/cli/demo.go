package cli

import (
	"os"

	"github.com/spf13/cobra"

	"mcpagents/internal/demo"
)

func demoCommand(status *int) *cobra.Command {
	return &cobra.Command{
		Use: "demo", Short: "run a Codex turn against the scripted model and show what happens", Hidden: true, Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			*status = demo.Run(cmd.Context(), os.Stdout, os.Getenv("MCP_AGENTS_RUNTIME"))
		},
	}
}
