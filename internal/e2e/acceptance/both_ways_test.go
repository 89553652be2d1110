package acceptance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/testkit/frontend"
	"mcpagents/internal/testkit/images"
	"mcpagents/internal/testkit/wait"
)

// outerCLI is a real CLI that runs on this machine, as a user's does, with our
// server in its configuration and a scripted model of its own. The sandboxes
// that the server makes have another, see startModel.
type outerCLI struct {
	*setting
	home  string
	model string // address of the CLI's own model
	env   []string
}

// outer prepares a CLI whose server runs its sandboxes from the image.
func outer(t *testing.T, image string) *outerCLI {
	t.Helper()
	inner := frontend.StartModel(t, built.agents, image)
	s := newSetting(t, "docker", image)
	s.put(t, "notes.txt", "the workspace says hello\n", 0o644)
	o := &outerCLI{setting: s, home: t.TempDir(), model: hostModel(t)}
	o.env = []string{"HOME=" + o.home, "CODEX_HOME=" + s.login, "CLAUDE_CONFIG_DIR=" + filepath.Join(o.home, ".claude"), "PATH=" + os.Getenv("PATH"),
		"MCP_AGENTS_IMAGE=" + image, "MCP_AGENTS_NETWORK=" + inner.Network, "MCP_AGENTS_MODEL_BASE_URL=" + inner.URL,
		"MCP_AGENTS_ENV=ACCEPTANCE_RUN", "MCP_AGENTS_STOP_GRACE=1", "ACCEPTANCE_RUN=" + s.run}
	return o
}

// hostModel is a scripted model on this machine's loopback.
func hostModel(t *testing.T) string {
	t.Helper()
	cmd := exec.Command(built.agents, "model", "--port", "0")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	fields := strings.Fields(line)
	return "http://" + fields[len(fields)-1]
}

// fromImage copies a program out of an image.
func fromImage(t *testing.T, image, path string) string {
	t.Helper()
	dir := t.TempDir()
	id := strings.TrimSpace(output(t, "docker", "create", image))
	defer func() { output(t, "docker", "rm", id) }()
	output(t, "docker", "cp", id+":"+path, dir)
	return filepath.Join(dir, filepath.Base(path))
}

// setUp lets our own command write the CLI's configuration.
func (o *outerCLI) setUp(t *testing.T, client string) {
	t.Helper()
	cmd := exec.Command(built.agents, "setup", client)
	cmd.Dir, cmd.Env = o.workspace, o.env
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), ": added")
}

// run runs the CLI to its end and returns its events.
func (o *outerCLI) run(t *testing.T, input string, argv ...string) []map[string]any {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = o.workspace, o.env
	cmd.Stdin = strings.NewReader(input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// The control of what is said below of nothing left: a sandbox is seen while the CLI works.
	wait.Until(t, func() bool { return len(o.sandboxes(t)) > 0 })
	select {
	case err := <-ended:
		require.NoError(t, err, "%s%s", stdout.String(), stderr.String())
	case <-time.After(wait.Limit):
		require.NoError(t, cmd.Process.Kill())
		<-ended
		require.FailNow(t, "the CLI does not end", "%s%s", stdout.String(), stderr.String())
	}
	var events []map[string]any
	for dec := json.NewDecoder(&stdout); ; {
		var e map[string]any
		if err := dec.Decode(&e); err == io.EOF {
			return events
		} else {
			require.NoError(t, err)
		}
		events = append(events, e)
	}
}

// sandboxes are the containers that see the workspace.
func (o *outerCLI) sandboxes(t *testing.T) []string {
	t.Helper()
	return strings.Fields(output(t, "docker", "ps", "-aq", "--filter", "volume="+o.workspace))
}

// requireNothingLeft looks for sandboxes and processes of the server, which has
// ended with its CLI.
func (o *outerCLI) requireNothingLeft(t *testing.T) {
	t.Helper()
	var found []string
	wait.Until(t, func() bool {
		found = append(o.marked(0), o.sandboxes(t)...)
		return len(found) == 0
	}, "%s", found)
}

// jobScript is a conversation with the job tools: the start, as many polls as a
// short job can need (one that is over answers at once), and the result.
func jobScript(prefix, start string) string {
	const polls = 6
	script := "[[tool: " + prefix + "start " + start + "]]"
	for range polls {
		script += " [[tool: " + prefix + `status {"jobId":"{{jobId}}","cursor":"{{cursor}}","wait_ms":30000}]]`
	}
	return script + " [[tool: " + prefix + `result {"jobId":"{{jobId}}"}]]`
}

// inside is a directive for the inner model, in a form that is none for the outer.
func inside(directive string) string { return `\u005b[` + directive + `]\u005d` }

// TestCodexAsksClaude: the real Codex, configured by our setup, has the
// workspace reviewed by the real Claude Code.
func TestCodexAsksClaude(t *testing.T) {
	codex := filepath.Join(fromImage(t, images.Codex(t), "/opt/codex"), "bin", "codex")
	o := outer(t, images.Claude(t))
	config := filepath.Join(o.login, "config.toml")
	require.NoError(t, os.WriteFile(config, []byte(fmt.Sprintf("openai_base_url = %q\ncheck_for_update_on_startup = false\n"+
		"[features]\napps = false\nhooks = false\nplugins = false\n[analytics]\nenabled = false\n", o.model+"/v1")), 0o600))
	o.setUp(t, "codex")
	// Codex hands none of its variables on: what the server needs is named in the entry.
	written, err := os.ReadFile(config)
	require.NoError(t, err)
	const deadline = "tool_timeout_sec = 960\n"
	require.Equal(t, 1, strings.Count(string(written), deadline))
	var names []string
	for _, variable := range o.env {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "MCP_AGENTS_") || name == "ACCEPTANCE_RUN" {
			names = append(names, strconv.Quote(name))
		}
	}
	named := deadline + "env_vars = [" + strings.Join(names, ", ") + "]\n"
	require.NoError(t, os.WriteFile(config, []byte(strings.Replace(string(written), deadline, named, 1)), 0o600))

	start, err := json.Marshal(map[string]string{"cwd": o.workspace, "prompt": "PROMPT"})
	require.NoError(t, err)
	prompt := jobScript("mcp__claude_code__claude_", strings.Replace(string(start), "PROMPT", inside("read: "+o.workspace+"/notes.txt"), 1))
	events := o.run(t, "", codex, "exec", "--skip-git-repo-check", "--json", prompt)
	var called []string
	var last map[string]any
	for _, e := range events {
		if item, _ := e["item"].(map[string]any); e["type"] == "item.completed" && item["type"] == "mcp_tool_call" {
			require.Equal(t, "claude-code", item["server"])
			require.Equal(t, "completed", item["status"], "%v", item)
			called = append(called, item["tool"].(string))
			last, _ = item["result"].(map[string]any)
		}
	}
	require.Equal(t, "claude-start", called[0])
	require.Equal(t, "claude-result", called[len(called)-1])
	result, _ := last["structured_content"].(map[string]any)
	require.Equal(t, "completed", result["state"])
	require.Contains(t, result["text"], "last tool output: 1\tthe workspace says hello", "what Claude Code read in its sandbox")
	o.requireNothingLeft(t)
}

// TestClaudeAsksCodex: the other way round. Claude Code finds the server in the
// project's own file.
func TestClaudeAsksCodex(t *testing.T) {
	claude := fromImage(t, images.Claude(t), "/opt/claude/claude")
	o := outer(t, images.Codex(t))
	o.setUp(t, "claude-code")
	o.env = append(o.env, "ANTHROPIC_API_KEY=made-up", "ANTHROPIC_BASE_URL="+o.model, "DISABLE_AUTOUPDATER=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
	start, err := json.Marshal(map[string]string{"cwd": o.workspace, "sandbox": "read-only", "prompt": "PROMPT"})
	require.NoError(t, err)
	prompt := jobScript("mcp__codex__codex-", strings.Replace(string(start), "PROMPT", inside("exec: cat notes.txt"), 1))
	events := o.run(t, prompt, claude, "-p", "--verbose", "--output-format", "stream-json", "--allowedTools", "mcp__codex")
	require.NotEmpty(t, events)
	var called []string
	for _, e := range events {
		message, _ := e["message"].(map[string]any)
		blocks, _ := message["content"].([]any)
		for _, b := range blocks {
			if block, _ := b.(map[string]any); block["type"] == "tool_use" {
				called = append(called, block["name"].(string))
			}
		}
	}
	require.NotEmpty(t, called)
	require.Equal(t, "mcp__codex__codex-start", called[0])
	require.Equal(t, "mcp__codex__codex-result", called[len(called)-1])
	end := events[len(events)-1]
	require.Equal(t, "result", end["type"])
	require.Equal(t, false, end["is_error"])
	require.Contains(t, end["result"], `"state":"completed"`)
	require.Contains(t, end["result"], "the workspace says hello", "what Codex's command said in its sandbox")
	o.requireNothingLeft(t)
}
