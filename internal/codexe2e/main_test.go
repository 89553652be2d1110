package codexe2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
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
	dir, err := os.MkdirTemp("", "mcp-agents-codexe2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	built.agents = filepath.Join(dir, "mcp-agents")
	// On the PATH of a local sandbox, and in an image, this is Codex.
	built.fakeCodex = filepath.Join(dir, "fake", "codex")
	for out, pkg := range map[string]string{built.agents: "mcpagents/cmd/mcp-agents", built.fakeCodex: "mcpagents/internal/fakecodex"} {
		cmd := exec.Command("go", "build", "-o", out, pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if b, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n%s", pkg, err, b)
			return 1
		}
	}
	return m.Run()
}

// codexImage is the image with the real Codex. Without an engine the test is
// skipped, unless the environment says that there must be one.
func codexImage(t *testing.T) string {
	t.Helper()
	image := os.Getenv("MCP_AGENTS_TEST_IMAGE_CODEX")
	if image == "" || exec.Command("docker", "image", "inspect", image).Run() != nil {
		if os.Getenv("MCP_AGENTS_REQUIRE_ENGINE") != "" {
			t.Fatalf("an engine is required, but image %q cannot be found with it: use `make test`", image)
		}
		t.Skip("no engine or no image: `make test` makes both where they can be had")
	}
	return image
}

// fakeImage is the Codex image with the fake Codex in front of the real one.
func fakeImage(t *testing.T) string {
	t.Helper()
	const tag = "mcp-agents-test/fakecodex-bridge:latest"
	base := codexImage(t)
	dir := filepath.Dir(built.fakeCodex)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("ARG BASE\nFROM $BASE\nCOPY codex /usr/local/sbin/codex\n"), 0o644))
	out, err := exec.Command("docker", "build", "-q", "--build-arg", "BASE="+base, "-t", tag, dir).CombinedOutput()
	require.NoError(t, err, string(out))
	return tag
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
