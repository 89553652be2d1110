package frontend

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"mcpagents/internal/testkit/images"

	"github.com/stretchr/testify/require"
)

// InFront builds an image under the tag: the Codex image with a program before
// the real one on its PATH, and labels of the form NAME=VALUE. The program's
// file is named codex.
func InFront(t *testing.T, program, tag string, labels ...string) string {
	t.Helper()
	args := []string{"build", "-q", "--build-arg", "BASE=" + images.Codex(t), "-t", tag}
	for _, label := range labels {
		args = append(args, "--label", label)
	}
	dir := filepath.Dir(program)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("ARG BASE\nFROM $BASE\nCOPY codex /usr/local/sbin/codex\n"), 0o644))
	out, err := exec.Command("docker", append(args, dir)...).CombinedOutput()
	require.NoError(t, err, string(out))
	return tag
}
