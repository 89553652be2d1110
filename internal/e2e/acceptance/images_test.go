package acceptance

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox/docker"
	"mcpagents/internal/sandbox/wire"
	"mcpagents/internal/testkit/images"
	"mcpagents/internal/version"
)

// alone runs the program as somebody has it who has no clone: in a directory
// without any source. It must be one of the Makefile's, which holds what a
// build needs.
func alone(t *testing.T, args ...string) (string, error) {
	t.Helper()
	dir := os.Getenv("MCP_AGENTS_TEST_BIN")
	if dir == "" {
		require.Empty(t, os.Getenv("MCP_AGENTS_REQUIRE_ENGINE"), "MCP_AGENTS_TEST_BIN names no directory with the program: use `make test`")
		t.Skip("make build has made no program: `make test` does")
	}
	cmd := exec.Command(filepath.Join(dir, "mcp-agents"), args...)
	cmd.Dir = t.TempDir()
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	err := cmd.Run()
	return both.String(), err
}

// The image of gemini is the one whose build downloads nothing but what a test
// names.
func TestProgramBuildsImagesWithoutAClone(t *testing.T) {
	base := images.Codex(t)
	said, err := alone(t, "images", "ls")
	require.Contains(t, said, base, "%v", err)

	const tag = "mcp-agents-test/without-clone:1"
	_ = exec.Command("docker", "rmi", tag).Run() // of a run that was killed
	t.Cleanup(func() { _ = exec.Command("docker", "rmi", tag).Run() })

	// Without an address the build stops, in a step of its Dockerfile, and says why.
	said, err = alone(t, "images", "build", "gemini", "--tag", tag, "--build-arg", "BASE="+base)
	require.Error(t, err)
	require.Contains(t, said, "images: gemini: 1/")
	require.Contains(t, said, "agy is not on any package registry")
	require.Error(t, exec.Command("docker", "image", "inspect", tag).Run())

	// With one it makes an image that can be used, once.
	b := newAgyBuild(t)
	build := []string{"images", "build", "gemini", "--tag", tag, "--build-arg", "BASE=" + b.base,
		"--build-arg", "AGY_URL=file:///srv/agy", "--build-arg", "AGY_VERSION=1.2.3", "--build-arg", "AGY_SHA256=" + b.sum}
	said, err = alone(t, build...)
	require.NoError(t, err, said)
	require.Contains(t, said, "images: built "+tag+" in ")
	said, err = alone(t, build...)
	require.NoError(t, err, said)
	require.Equal(t, "images: "+tag+" is up to date\n", said)

	s := newSetting(t, "docker", tag)
	s.args = []string{"--provider", "gemini", "--network", "none"}
	s.env = []string{"GEMINI_API_KEY=" + s.secret}
	c := s.start(t)
	c.initialize()
	a := c.tool("gemini", map[string]any{"prompt": "plain"})
	require.False(t, a.IsError, a.text)
	require.Equal(t, "plain", a.text)
	s.gone(t, c)
}

// An image comes from a registry on loopback and gets the name that the
// provider uses; one of another protocol gets none.
func TestProgramPullsImages(t *testing.T) {
	images.Codex(t) // an engine is needed
	name := docker.DefaultImage("gemini")
	idOf := func() string {
		out, _ := exec.Command("docker", "image", "inspect", "--format", "{{.Id}}", name).Output()
		return strings.TrimSpace(string(out))
	}
	before := idOf()
	t.Cleanup(func() { // the user's own image has its name again
		_ = exec.Command("docker", "rmi", name).Run()
		if before != "" {
			_ = exec.Command("docker", "tag", before, name).Run()
		}
	})
	for _, tt := range []struct {
		name     string
		protocol int
	}{{"another protocol", wire.Version + 1}, {"this protocol", wire.Version}} {
		t.Run(tt.name, func(t *testing.T) {
			mark := rand.Text()
			host := imageRegistry(t, "team/gemini", version.Version, fmt.Sprintf("FROM scratch\nCOPY Dockerfile /\nLABEL mark=%q %s=%d mcp-agents.cli=agy\n",
				mark, docker.LabelProtocol, tt.protocol))
			t.Cleanup(func() { _ = exec.Command("docker", "rmi", host+"/team/gemini:"+version.Version).Run() })
			said, err := alone(t, "images", "pull", "gemini", "--from", host+"/team")
			if tt.protocol != wire.Version {
				require.Error(t, err)
				require.Contains(t, said, fmt.Sprintf("speaks sandbox protocol %d", tt.protocol))
				require.Equal(t, before, idOf())
				return
			}
			require.NoError(t, err, said)
			require.Contains(t, said, "images: "+name+" is "+host+"/team/gemini:"+version.Version)
			require.Equal(t, mark+"\n", output(t, "docker", "image", "inspect", "--format", `{{index .Config.Labels "mark"}}`, name))
		})
	}
}
