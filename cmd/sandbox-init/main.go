// Command sandbox-init is the first process of every sandbox container.
package main

import (
	"os"

	"mcpagents/internal/sandboxinit"
)

func main() {
	os.Exit(sandboxinit.Main(os.Args[1:]))
}
