package acceptance

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The program alone, in a directory without any source, lists images and builds
// one. The program must be one of the Makefile's, which holds what a build needs.
func TestProgramBuildsImagesWithoutAClone(t *testing.T) {
	base := codexImage(t)
	dir := os.Getenv("MCP_AGENTS_TEST_BIN")
	if dir == "" {
		t.Skip("make build has made no program: `make test` does")
	}
	run := func(args ...string) (string, error) {
		cmd := exec.Command(filepath.Join(dir, "mcp-agents"), args...)
		cmd.Dir = t.TempDir()
		var both bytes.Buffer
		cmd.Stdout, cmd.Stderr = &both, &both
		err := cmd.Run()
		return both.String(), err
	}
	said, err := run("images", "ls")
	require.Contains(t, said, base, "%v", err)

	// gemini's image is the one whose build downloads nothing but what a test names: without an address it stops, in a
	// step of its Dockerfile, and says why.
	const tag = "mcp-agents-test/without-clone:1"
	t.Cleanup(func() { _ = exec.Command("docker", "rmi", tag).Run() })
	said, err = run("images", "build", "gemini", "--tag", tag, "--build-arg", "BASE="+base)
	require.Error(t, err)
	require.Contains(t, said, "images: gemini: 1/")
	require.Contains(t, said, "agy is not on any package registry")
	require.Error(t, exec.Command("docker", "image", "inspect", tag).Run())
}
