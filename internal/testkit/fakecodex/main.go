// Fakecodex plays the Codex CLI in tests: an MCP server on stdin and stdout that
// misbehaves as it is told. The prompt of a call is its script, a JSON array of
// steps such as [{"do":"event","type":"task_started"},{"do":"answer","text":"ok"}].
// A prompt that is no array is answered with itself. With FAKECODEX_CONTROL it
// takes its steps from a test instead, one after the other.
package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	args := os.Args[1:]
	switch {
	case len(args) == 1 && args[0] == "--version":
		fmt.Println(cmp.Or(os.Getenv("FAKECODEX_VERSION"), "codex-cli 0.153.4"))
	case len(args) > 0 && args[0] == "sandbox":
		return // the preflight
	case len(args) == 1 && args[0] == "mcp-server":
		serve()
	case len(args) == 2 && args[0] == "linger":
		linger(args[1])
	case len(args) == 4 && args[0] == "bomb":
		bomb(args[1:])
	default:
		fmt.Fprintf(os.Stderr, "%s: stdin is not a terminal\n", filepath.Base(os.Args[0]))
	}
}
