package frontend

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// CodexImage is the image with the real Codex. Without an engine the test is
// skipped, unless the environment says that there must be one.
func CodexImage(t *testing.T) string {
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

// InFront builds an image under the tag: the Codex image with a program before
// the real one on its PATH, and labels of the form NAME=VALUE. The program's
// file is named codex.
func InFront(t *testing.T, program, tag string, labels ...string) string {
	t.Helper()
	args := []string{"build", "-q", "--build-arg", "BASE=" + CodexImage(t), "-t", tag}
	for _, label := range labels {
		args = append(args, "--label", label)
	}
	dir := filepath.Dir(program)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("ARG BASE\nFROM $BASE\nCOPY codex /usr/local/sbin/codex\n"), 0o644))
	out, err := exec.Command("docker", append(args, dir)...).CombinedOutput()
	require.NoError(t, err, string(out))
	return tag
}
