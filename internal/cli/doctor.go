package cli

import (
	"os"

	"github.com/spf13/cobra"

	"mcpagents/internal/app"
	"mcpagents/internal/config"
	"mcpagents/internal/doctor"
)

func doctorCommand(status *int) *cobra.Command {
	var server []string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "look at engine, image, login and workspace, and say what to do", Args: cobra.NoArgs,
		Long: "Looks at what a server needs, and says what to do about what is missing. It only looks: nothing is started, written\n" +
			"or pulled. Give it the flags of the server (mcp-agents --help) that it is to look for, such as --provider.\n\n" +
			"Exit status: 0 when calls can work, else 1.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts, err := config.Parse(server, os.LookupEnv)
			if err != nil {
				return err
			}
			checks, done, err := app.Checks(opts)
			if err != nil {
				return err
			}
			defer done()
			results := doctor.Run(cmd.Context(), checks)
			if !doctor.Healthy(results) {
				*status = exitFail
			}
			return doctor.Write(os.Stdout, results, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	passServerFlags(cmd.Flags(), &server)
	return cmd
}
