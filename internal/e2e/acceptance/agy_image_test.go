package acceptance

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"

	"mcpagents/internal/testkit/images"

	"github.com/stretchr/testify/require"
)

// agyBuild builds the project's own image of agy.
type agyBuild struct {
	context, base string
	sum           string // of the program that plays agy
}

// newAgyBuild makes a base image that holds what the build would download: the
// vendor's program as a fake, once bare and once in an archive. Its apt-get does
// nothing, since the base has what it would install.
func newAgyBuild(t *testing.T) *agyBuild {
	t.Helper()
	b := &agyBuild{context: t.TempDir(), base: "mcp-agents-test/agybase:latest"}
	recipe, err := os.ReadFile(filepath.Join("..", "..", "..", "images", "agy", "Dockerfile"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(b.context, "Dockerfile"), recipe, 0o644))
	for out, pkg := range map[string]string{"bin/sandbox-init-linux-" + runtime.GOARCH: "mcpagents/cmd/sandbox-init", "base/agy": "mcpagents/internal/testkit/fakeclaude"} {
		cmd := exec.Command("go", "build", "-o", filepath.Join(b.context, out), pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
		text, err := cmd.CombinedOutput()
		require.NoError(t, err, string(text))
	}
	dir := filepath.Join(b.context, "base")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "agy-1.2.3"), 0o755))
	program, err := os.ReadFile(filepath.Join(dir, "agy"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "agy-1.2.3", "agy"), program, 0o755))
	output(t, "tar", "-czf", filepath.Join(dir, "agy.tar.gz"), "-C", dir, "agy-1.2.3")
	output(t, "tar", "-czf", filepath.Join(dir, "none.tar.gz"), "-C", b.context, "Dockerfile")
	b.sum = b.sumOf(t, "agy")
	dockerfile := "ARG BASE\nFROM $BASE\nCOPY agy agy.tar.gz none.tar.gz /srv/\nRUN printf '#!/bin/sh\\n' >/usr/local/sbin/apt-get && chmod +x /usr/local/sbin/apt-get\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(dockerfile), 0o644))
	output(t, "docker", "build", "-q", "--build-arg", "BASE="+images.Claude(t), "-t", b.base, dir)
	return b
}

func (b *agyBuild) sumOf(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(b.context, "base", name))
	require.NoError(t, err)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func (b *agyBuild) run(tag, url, version, sum string) (string, error) {
	out, err := exec.Command("docker", "build", "--force-rm", "--network", "none", "-t", tag, "--build-arg", "BASE="+b.base, "--build-arg", "AGY_URL="+url,
		"--build-arg", "AGY_VERSION="+version, "--build-arg", "AGY_SHA256="+sum, b.context).CombinedOutput()
	return string(out), err
}

// The vendor's program can be had from its vendor only: the build stops where
// it is not told where from, and where what comes is not what was meant.
func TestAgyImageBuildStops(t *testing.T) {
	b := newAgyBuild(t)
	const here, version = "file:///srv/agy", "1.2.3"
	for name, tt := range map[string]struct{ url, version, sum, want string }{
		"nothing is given":  {"", "", "", "agy is not on any package registry: take its address, version and SHA-256 from its vendor"},
		"no version":        {here, "", b.sum, "  --build-arg AGY_URL=… --build-arg AGY_VERSION=… --build-arg AGY_SHA256=…"},
		"no sum":            {here, version, "", "  --build-arg AGY_URL=… --build-arg AGY_VERSION=… --build-arg AGY_SHA256=…"},
		"another sum":       {here, version, hex.EncodeToString(make([]byte, 32)), "/cli/download: FAILED"},
		"nobody there":      {"http://127.0.0.1:9/agy", version, b.sum, "agy cannot be downloaded from AGY_URL"},
		"no agy in archive": {"file:///srv/none.tar.gz", version, b.sumOf(t, "none.tar.gz"), "the download holds no file named agy"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := b.run("mcp-agents-test/agy-none:latest", tt.url, tt.version, tt.sum)
			require.Error(t, err)
			// Said by itself: builders repeat the whole command, with all that it could say.
			plain := regexp.MustCompile(`\x1b\[\d+m`).ReplaceAllString(out, "") // they colour it, letter by letter
			require.Regexp(t, `(?m)^(#\d+ [\d.]+ )?`+regexp.QuoteMeta(tt.want), plain)
		})
	}
}

// TestAgyImage: what the recipe makes of a program that plays agy is used like
// the real one, whichever of the two forms the vendor offers.
func TestAgyImage(t *testing.T) {
	b := newAgyBuild(t)
	for _, name := range []string{"agy", "agy.tar.gz"} {
		t.Run(name, func(t *testing.T) {
			const tag = "mcp-agents-test/agy:latest"
			out, err := b.run(tag, "file:///srv/"+name, "1.2.3", b.sumOf(t, name))
			require.NoError(t, err, out)
			require.Equal(t, "agy 1.2.3\n", output(t, "docker", "image", "inspect", "--format",
				`{{index .Config.Labels "mcp-agents.cli"}} {{index .Config.Labels "mcp-agents.cli.version"}}`, tag))
			s := newSetting(t, "docker", tag)
			s.args = []string{"--provider", "gemini", "--network", "none"}
			s.env = []string{"GEMINI_API_KEY=" + s.secret}
			c := s.start(t)
			c.initialize()
			a := c.tool("gemini", map[string]any{"prompt": "plain"})
			require.False(t, a.IsError, a.text)
			require.Equal(t, "plain", a.text)
			s.gone(t, c)
		})
	}
}
