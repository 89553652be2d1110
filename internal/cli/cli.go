// Package cli is the command line: without a subcommand it is the MCP server of
// a provider on stdin and stdout, and it holds the subcommands beside that.
package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"mcpagents/internal/app"
	"mcpagents/internal/config"
	"mcpagents/internal/sandbox/guest"
	"mcpagents/internal/version"
)

// Exit statuses of the command line.
const (
	exitOK    = 0
	exitFail  = 1
	exitUsage = 2 // of subcommands; the server's own flags end with 1
)

// Main runs the program with its arguments and returns the exit status.
func Main(args []string) int {
	if len(args) > 0 && args[0] == "sandbox-init" {
		return guest.Main(args[1:]) // before anything is read: it hides its memory first
	}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") && args[0] != "" {
		return subcommand(args)
	}
	opts, err := config.Parse(args, os.LookupEnv)
	if err != nil {
		var usage *config.UsageError
		if errors.As(err, &usage) {
			fmt.Fprintln(os.Stderr, usage.Report())
		} else {
			fmt.Fprintln(os.Stderr, "error:", err)
		}
		return exitFail
	}
	switch opts.Action {
	case config.ActionHelp:
		fmt.Print(config.Help(version.Version, documented()))
		return exitOK
	case config.ActionVersion:
		fmt.Println("mcp-agents v" + version.Version)
		return exitOK
	}
	status, err := app.Serve(opts)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return exitFail
	}
	return status
}
