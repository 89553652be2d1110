// Command mcp-agents runs coding agents in disposable sandboxes behind MCP.
package main

import (
	"os"

	"mcpagents/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:]))
}
