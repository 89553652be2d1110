// Command sandbox-init is the first process of every sandbox container.
package main

import (
	"os"

	"mcpagents/internal/sandbox/guest"
)

func main() {
	os.Exit(guest.Main(os.Args[1:]))
}
