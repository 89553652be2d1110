package acceptance

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mcpagents/internal/testkit/frontend"
)

// rounds is how often each row of the fault table runs.
var rounds = flag.Int("rounds", 1, "rounds of each row of the fault table")

// slack is what an end may take beyond the grace, and beyond the lifeline's
// length where the fault leaves the stream open. On a machine to itself 2 s are
// asked for; beside other packages' tests the engine's disk alone takes seconds.
var slack = flag.Duration("slack", 10*time.Second, "what an end may take beyond the grace in the fault table")

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

// codexImage is the image with the real Codex; without an engine the test is
// skipped.
func codexImage(t *testing.T) string {
	t.Helper()
	return frontend.CodexImage(t)
}

// fakeImage is the Codex image with the fake Codex in front of the real one.
func fakeImage(t *testing.T) string {
	t.Helper()
	return frontend.InFront(t, built.fakeCodex, "mcp-agents-test/fakecodex:latest")
}
