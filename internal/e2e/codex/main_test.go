package codex

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"mcpagents/internal/testkit/frontend"
)

// built holds the programs that the tests run.
var built struct{ agents, fakeCodex string }

func TestMain(m *testing.M) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set("10") // scenarios mostly wait
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, remove, err := frontend.Programs("mcp-agents-codexe2e-", map[string]string{
		"mcp-agents": "mcpagents/cmd/mcp-agents", "fake/codex": "mcpagents/internal/testkit/fakecodex"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer remove()
	built.agents = filepath.Join(dir, "mcp-agents")
	// On the PATH of a local sandbox, and in an image, this is Codex.
	built.fakeCodex = filepath.Join(dir, "fake", "codex")
	return m.Run()
}

// fakeImage is the Codex image with the fake Codex in front of the real one,
// oldFakeImage one whose Codex has no table of agents.
func fakeImage(t *testing.T) string {
	t.Helper()
	return frontend.InFront(t, built.fakeCodex, "mcp-agents-test/fakecodex-bridge:latest")
}

func oldFakeImage(t *testing.T) string {
	t.Helper()
	return frontend.InFront(t, built.fakeCodex, "mcp-agents-test/fakecodex-old:latest", "mcp-agents.cli.version=0.130.0")
}

// onBothRuntimes runs a test with the fake Codex as a local process and in a
// container.
func onBothRuntimes(t *testing.T, test func(t *testing.T, s *setting)) {
	t.Run("local", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			t.Skip("the local runtime needs Linux")
		}
		test(t, newSetting(t, "local", ""))
	})
	t.Run("docker", func(t *testing.T) { test(t, newSetting(t, "docker", fakeImage(t))) })
}
