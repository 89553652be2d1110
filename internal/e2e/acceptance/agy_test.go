package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"mcpagents/internal/testkit/images"

	"github.com/stretchr/testify/require"
)

// fakeToolImage is the Claude image with a program that plays claude and agy.
func fakeToolImage(t *testing.T) string {
	t.Helper()
	const tag = "mcp-agents-test/fakeclaude:latest"
	base := images.Claude(t)
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "fake"), "mcpagents/internal/testkit/fakeclaude")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	dockerfile := "ARG BASE\nFROM $BASE\nCOPY fake /usr/local/sbin/claude\nCOPY fake /usr/local/sbin/agy\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(dockerfile), 0o644))
	out, err = exec.Command("docker", "build", "-q", "--build-arg", "BASE="+base, "-t", tag, dir).CombinedOutput()
	require.NoError(t, err, string(out))
	return tag
}

// TestAgyInAContainer: without the workspace, with the user's token, and what a
// call leaves is gone.
func TestAgyInAContainer(t *testing.T) {
	s := newSetting(t, "docker", fakeToolImage(t))
	require.NoError(t, os.WriteFile(filepath.Join(s.login, "antigravity-oauth-token"), []byte(s.secret), 0o600))
	s.args = []string{"--provider", "gemini", "--network", "none", "--auth_source", s.login}
	s.env = []string{"ANTIGRAVITY_API_KEY=", "GEMINI_API_KEY=", "GOOGLE_API_KEY="}
	c := s.start(t)
	c.initialize()
	call := func(prompt string) toolAnswer {
		return c.tool("gemini", map[string]any{"prompt": prompt, "timeout_ms": 600000})
	}
	require.Equal(t, "plain", call("plain").text)
	a := call(`[{"do":"write","path":"` + s.workspace + `/x"}]`)
	require.Contains(t, a.text, "no such file", "the workspace is not there")
	a = call(`[{"do":"show","path":"/home/agent/.gemini/antigravity-cli/antigravity-oauth-token"}]`)
	require.Equal(t, s.secret, a.text)
	require.Equal(t, "wrote here", call(`[{"do":"write","path":"here"}]`).text, "it may write where it works")
	a = call(`[{"do":"linger"},{"do":"exit"}]`)
	require.True(t, a.IsError)
	require.Contains(t, a.text, "agy returned empty output (exit 0)")
	s.gone(t, c)
}

func TestAgyMissingLoginStartsNothing(t *testing.T) {
	s := newSetting(t, "docker", fakeToolImage(t))
	s.args = []string{"--provider", "gemini", "--network", "none", "--auth_source", s.login}
	s.env = []string{"ANTIGRAVITY_API_KEY=", "GEMINI_API_KEY=", "GOOGLE_API_KEY="}
	c := s.start(t)
	c.initialize()
	a := c.tool("gemini", map[string]any{"prompt": "x"})
	require.True(t, a.IsError)
	require.Contains(t, a.text, "agy login is missing")
	require.Empty(t, s.containers(t, c.cmd.Process.Pid))
	s.gone(t, c)
}

// TestFakeClaudeFaults are the faults that no CLI shows on demand, in a container.
func TestFakeClaudeFaults(t *testing.T) {
	s := newSetting(t, "docker", fakeToolImage(t))
	s.args = []string{"--provider", "claude", "--network", "none", "--warm", "0"}
	s.env = []string{"CLAUDE_CONFIG_DIR=" + s.login, "ANTHROPIC_API_KEY=" + s.secret}
	c := s.start(t)
	c.initialize()
	for name, tt := range map[string]struct{ prompt, state, message string }{
		"a result, then it never exits":    {`[{"do":"result","text":"ok"},{"do":"ignore-term"},{"do":"linger"},{"do":"stall"}]`, "completed", "ok"},
		"a line of 100 MB":                 {`[{"do":"stdout-bytes","repeat":100000000},{"do":"stall"}]`, "failed", "Claude: one output event exceeded the stream safety limit"},
		"invalid UTF-8":                    {`[` + invalidEvent + `,{"do":"result","text":"ok"}]`, "completed", "ok"},
		"a child in the background":        {`[{"do":"linger"},{"do":"result","text":"ok"},{"do":"exit"}]`, "completed", "ok"},
		"a write":                          {`[{"do":"write","path":"` + s.workspace + `/x","text":"x"}]`, "completed", "open " + s.workspace + "/x: read-only file system"},
		"nothing at all and a zero":        {`[{"do":"exit"}]`, "failed", "Claude: provider exited without a result"},
		"a signal that nobody sent":        {`[{"do":"signal","code":9}]`, "failed", "Claude: provider exited without a result"},
		"an error with exit 0":             {`[{"do":"result","text":"no","is_error":true}]`, "failed", "Claude: provider returned an error"},
		"blank twice":                      {`[{"do":"result"}]`, "failed", "Claude: returned an empty result twice"},
		"more on stderr than anyone reads": {`[{"do":"stderr-bytes","repeat":30000000},{"do":"result","text":"ok"}]`, "completed", "ok"},
	} {
		a := c.review(tt.prompt)
		require.Equal(t, tt.state, a.Structured.State, name)
		if tt.state == "completed" {
			require.Equal(t, tt.message, a.Structured.Text, name)
		} else {
			require.Equal(t, tt.message, a.Structured.Message, name)
		}
		l := s.look(t, c.cmd.Process.Pid)
		require.Zero(t, l.count(), "%s: %s", name, l)
	}
	require.Equal(t, "wrote "+s.workspace+"/x", c.tool("claude_code", map[string]any{"prompt": `[{"do":"write","path":"` + s.workspace + `/x","text":"x"}]`}).text,
		"control: a turn that may write does")
	s.gone(t, c)
}

// TestReviewSeesOneRoot: the one that holds its directory, and no other.
func TestReviewSeesOneRoot(t *testing.T) {
	s := newSetting(t, "docker", fakeToolImage(t))
	other := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(other, "deep"), 0o755))
	for _, path := range []string{s.put(t, "first", "of the first", 0o644), filepath.Join(other, "second")} {
		require.NoError(t, os.WriteFile(path, []byte(filepath.Base(path)), 0o644))
	}
	s.args = []string{"--provider", "claude", "--network", "none", "--workspace", other}
	s.env = []string{"CLAUDE_CONFIG_DIR=" + s.login, "ANTHROPIC_API_KEY=" + s.secret}
	c := s.start(t)
	c.initialize()
	show := func(cwd, path string) string {
		id := c.tool("claude-start", map[string]any{"prompt": `[{"do":"show","path":"` + path + `"}]`, "cwd": cwd}).Structured.JobID
		require.Equal(t, "completed", c.jobEnd(id).Structured.State)
		return c.tool("claude-result", map[string]any{"jobId": id}).Structured.Text
	}
	require.Equal(t, "first", show(s.workspace, s.workspace+"/first"))
	require.Contains(t, show(s.workspace, other+"/second"), "no such file")
	require.Equal(t, "second", show(other, other+"/second"))
	require.Equal(t, "second", show(other+"/deep", "../second"), "it starts in its own directory")
	require.Contains(t, show(other, s.workspace+"/first"), "no such file")
	s.gone(t, c)
}
