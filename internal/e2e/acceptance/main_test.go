package acceptance

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"mcpagents/internal/testkit/frontend"
)

// rounds is how often each row of the fault table runs.
var rounds = flag.Int("rounds", 1, "rounds of each row of the fault table")

// slack is what an end may take beyond the grace, and beyond the lifeline's
// length where the fault leaves the stream open: 2 s on a machine to itself, see
// `make faults`. Elsewhere it says more about the machine, and only what is left
// is judged.
var slack = flag.Duration("slack", 0, "what an end may take beyond the grace in the fault table; 0: as long as it takes")

// full is whether the whole fault table is played on docker.
var full = os.Getenv("MCP_AGENTS_FULL") == "1"

// built holds the programs that the tests run.
var built struct{ dir, agents, fakeCodex string }

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, remove, err := frontend.Programs("mcp-agents-acceptance-", map[string]string{
		"mcp-agents": "mcpagents/cmd/mcp-agents", "fake/codex": "mcpagents/internal/testkit/fakecodex"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer remove()
	built.dir, built.agents = dir, filepath.Join(dir, "mcp-agents")
	// On the PATH of a local sandbox, and in an image, this is Codex.
	built.fakeCodex = filepath.Join(dir, "fake", "codex")
	defer func() {
		if own != nil {
			own.close()
		}
	}()
	return m.Run()
}

// fakeImage is the Codex image with the fake Codex in front of the real one.
func fakeImage(t *testing.T) string {
	t.Helper()
	return frontend.InFront(t, built.fakeCodex, "mcp-agents-test/fakecodex:latest")
}
