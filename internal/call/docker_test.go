//go:build unix

package call_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpagents/internal/testkit/images"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Scenarios with which the real Codex writes a file, and then ends its turn or
// waits until it is cancelled.
const (
	writes = `{"steps": [{"exec": {"cmd": "printf 'by Codex\\n' >made.txt; id -u"}}], "final": "made it"}`
	stalls = `{"steps": [{"exec": {"cmd": "touch began; sleep 600"}}], "final": "never"}`
)

// pipeline is a checkout with a scenario beside it, and no login anywhere.
type pipeline struct {
	t                *testing.T
	image, dir, repo string
}

func newPipeline(t *testing.T, scenario string) pipeline {
	t.Helper()
	image := images.Codex(t)
	dir, err := os.MkdirTemp("", "mcp-agents-call-docker-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	p := pipeline{t, image, dir, filepath.Join(dir, "repo")}
	require.NoError(t, os.Mkdir(p.repo, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "scenario.json"), []byte(scenario), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "task.md"), []byte("Make the file.\n"), 0o600))
	require.NoError(t, exec.Command("git", "init", "-q", p.repo).Run())
	if os.Getuid() == 0 { // as a checkout of a user
		require.NoError(t, exec.Command("chown", "-R", "1000:1000", p.repo).Run())
	}
	return p
}

func (p pipeline) command(more ...string) *exec.Cmd {
	args := []string{"call", "--provider", "codex", "--image", p.image, "--scripted", "../scenario.json", "codex",
		"--arg", "prompt=@../task.md", "--arg", "cwd=.", "--arg", "sandbox=workspace-write", "--out", "../out"}
	cmd := exec.Command(filepath.Join(bin, "mcp-agents"), append(args, more...)...)
	cmd.Dir = p.repo
	cmd.Env = append(os.Environ(), "HOME="+p.dir, "CODEX_HOME=/nonexistent/codex", "OPENAI_API_KEY=", "CODEX_API_KEY=")
	return cmd
}

func (p pipeline) out(name string) string {
	p.t.Helper()
	b, err := os.ReadFile(filepath.Join(p.dir, "out", name))
	require.NoError(p.t, err)
	return string(b)
}

// containers are those that see the checkout, and the model's, which sees our binary.
func (p pipeline) containers() []string {
	p.t.Helper()
	var all []string
	for _, filter := range []string{"volume=" + p.repo, "volume=" + filepath.Join(bin, "mcp-agents")} {
		out, err := exec.Command("docker", "ps", "-a", "-q", "--no-trunc", "--filter", filter).Output()
		require.NoError(p.t, err)
		all = append(all, strings.Fields(string(out))...)
	}
	return all
}

func TestRealCodexWithAScriptedModel(t *testing.T) {
	p := newPipeline(t, writes)
	cmd := p.command("--json")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), stderr.String())
	var result struct {
		Content []struct{ Text string }
		IsError bool
	}
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &result), stdout.String())
	assert.False(t, result.IsError)
	assert.Equal(t, "made it", result.Content[0].Text)
	assert.Contains(t, stderr.String(), "Codex: started")
	assert.Contains(t, p.out("diff.patch"), "+++ b/made.txt\n@@ -0,0 +1 @@\n+by Codex\n")
	assert.Contains(t, p.out("result.json"), "made it")
	assert.Contains(t, p.out("call.log"), "Codex: started")
	assert.Empty(t, p.containers())
}

func TestSignalsEndTheSandboxes(t *testing.T) {
	for name, tc := range map[string]struct {
		signal syscall.Signal
		more   []string
		status int
	}{
		"SIGTERM":  {syscall.SIGTERM, nil, 143},
		"SIGINT":   {syscall.SIGINT, nil, 130},
		"deadline": {0, []string{"--deadline", "4"}, 124},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPipeline(t, stalls)
			cmd := p.command(tc.more...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			require.NoError(t, cmd.Start())
			ended := make(chan struct{})
			go func() { _ = cmd.Wait(); close(ended) }()
			defer func() { _ = cmd.Process.Kill(); <-ended }()
			require.Eventually(t, func() bool {
				_, err := os.Stat(filepath.Join(p.repo, "began"))
				return err == nil
			}, limit, 20*time.Millisecond, "the command began")
			assert.Len(t, p.containers(), 2, "the check for what is left can see it")
			begin := time.Now()
			if tc.signal != 0 {
				require.NoError(t, cmd.Process.Signal(tc.signal))
			}
			select {
			case <-ended:
			case <-time.After(limit):
				t.Fatal("it did not end")
			}
			assert.Less(t, time.Since(begin), 9*time.Second, "a CI system kills after ten seconds")
			assert.Equal(t, tc.status, cmd.ProcessState.ExitCode(), stderr.String())
			assert.Empty(t, p.containers())
			assert.Contains(t, p.out("diff.patch"), "b/began")
		})
	}
}
