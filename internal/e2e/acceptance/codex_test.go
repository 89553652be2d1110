package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/credentials"
	"mcpagents/internal/provider/codex"
	"mcpagents/internal/provider/codex/config"
	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/docker"
	"mcpagents/internal/testkit/wait"
	"mcpagents/internal/workspace"
)

// writes is a command that tries to write inside and outside the workspace.
const writes = `[[exec: for f in inside.txt "$HOME/outside.txt" /opt/outside.txt; do if echo x > "$f"; then echo "wrote $f"; else echo "refused $f"; fi; done 2>/dev/null; echo "uid $(id -u)"]]`

// Codex's own sandbox must work inside ours: without it every command fails
// while the turn "completes".
func TestCodexsOwnSandboxWorksInOurs(t *testing.T) {
	for _, owner := range []int{1000, 0} {
		t.Run(fmt.Sprintf("workspace of uid %d", owner), func(t *testing.T) {
			s := realCodex(t, owner)
			c := s.start(t)
			c.initialize()
			outside := t.TempDir() // on the host, in no workspace
			for _, tt := range []struct {
				mode                       string
				inside, home, rootFilesSys bool
			}{
				{"read-only", false, false, false},
				{"workspace-write", true, false, false},
				{"danger-full-access", true, true, false}, // the container's root is read-only
			} {
				_ = os.Remove(filepath.Join(s.workspace, "inside.txt"))
				text := c.turn(writes, map[string]any{"sandbox": tt.mode})
				want := func(file string, ok bool) string {
					if ok {
						return "wrote " + file
					}
					return "refused " + file
				}
				require.Contains(t, text, want("inside.txt", tt.inside), tt.mode)
				require.Contains(t, text, want("/home/agent/outside.txt", tt.home), tt.mode)
				require.Contains(t, text, want("/opt/outside.txt", tt.rootFilesSys), tt.mode)
				require.Contains(t, text, fmt.Sprintf("uid %d", owner), tt.mode)
				require.Equal(t, tt.inside, exists(s.workspace, "inside.txt"), tt.mode)
				if tt.inside {
					st, err := os.Stat(filepath.Join(s.workspace, "inside.txt"))
					require.NoError(t, err)
					require.Equal(t, uint32(owner), st.Sys().(*syscall.Stat_t).Uid)
				}
			}
			text := c.turn(`[[exec: ls -d `+outside+` /root/.codex /var/run/docker.sock 2>&1; true]]`, map[string]any{"sandbox": "danger-full-access"})
			for _, path := range []string{outside, "/root/.codex", "/var/run/docker.sock"} {
				// uid 1000 may not even look into the image's own /root.
				require.Regexp(t, "cannot access '"+path+"': (No such file|Permission denied)", text)
			}
			require.NoError(t, c.in.Close())
			require.Zero(t, c.exit())
		})
	}
}

// The profile is what makes it work: under the engine's default one the first
// use gives one clear error, and the handshake is answered all the same.
func TestPlainSeccompProfileGivesOneClearError(t *testing.T) {
	s := realCodex(t, 1000)
	rt, err := docker.New("")
	require.NoError(t, err)
	t.Cleanup(func() { _ = rt.Close() })
	roots, err := workspace.Resolve([]string{s.workspace}, s.workspace, "", nil)
	require.NoError(t, err)
	l := &codex.Sandboxed{Runtime: rt, Roots: roots, Dir: s.workspace, Login: credentials.Codex(s.login), Preflight: true,
		// A spec without system calls of its own gets the default profile.
		Spec:     sandbox.Spec{Provider: "plain", Instance: "acceptance", Image: s.image, Network: "none", FilesDir: ".codex"},
		Settings: config.Config{Model: "m", ReasoningEffort: "high", ApprovalPolicy: "never", SandboxMode: "workspace-write"},
		CLIVersion: func(ctx context.Context) (string, error) {
			i, err := rt.Inspect(ctx, s.image)
			return i.CLIVersion, err
		},
		Log: slog.New(slog.DiscardHandler)}
	in, toFrontEnd := io.Pipe()
	var out lockedBuffer
	done := make(chan int, 1)
	go func() { done <- codex.Run(t.Context(), codex.Config{Launch: l.Launch, Log: l.Log}, in, &out) }()
	fmt.Fprintln(toFrontEnd, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	call, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": map[string]any{"name": "codex",
		"arguments": map[string]any{"prompt": "p", "cwd": s.workspace, "sandbox": "read-only"}}})
	require.NoError(t, err)
	fmt.Fprintln(toFrontEnd, string(call))
	wait.Until(t, func() bool { return strings.Count(out.String(), "\n") >= 2 })
	require.Contains(t, out.String(), `"serverInfo":{"name":"mcp-agents"`)
	require.Contains(t, out.String(), "Codex's own sandbox cannot start inside this container")
	require.Contains(t, out.String(), "seccomp profile")
	require.Contains(t, out.String(), `"isError":true`)
	require.NoError(t, toFrontEnd.Close())
	require.Zero(t, <-done)
}

func TestContainerIsHardened(t *testing.T) {
	for owner, caps := range map[int]string{1000: "0000000000000000", 0: "0000000080000000"} { // SETFCAP is bit 31
		t.Run(fmt.Sprintf("workspace of uid %d", owner), func(t *testing.T) {
			s := realCodex(t, owner)
			c := s.start(t)
			c.initialize()
			text := c.turn(`[[exec: grep -E '^(Uid|CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr '\t\n' ' ,'; touch /x 2>&1; stat -c '%a %u' "$HOME"]]`,
				map[string]any{"sandbox": "danger-full-access"})
			require.Contains(t, text, fmt.Sprintf("Uid: %d %d %d %d,", owner, owner, owner, owner))
			require.Contains(t, text, "CapEff: "+caps)
			require.Contains(t, text, "CapBnd: "+caps)
			require.Contains(t, text, "NoNewPrivs: 1")
			require.Contains(t, text, "Seccomp: 2")
			require.Contains(t, text, "Read-only file system")
			require.Contains(t, text, fmt.Sprintf("700 %d", owner))
		})
	}
}

// A secret in the login and one in a variable appear nowhere but inside.
func TestSecretsAreNotVisible(t *testing.T) {
	s := realCodex(t, 1000)
	// Codex keeps variables whose names say secret, key or token from its
	// commands; this one's name does not, so that it can be seen inside.
	const variable = "variable-secret-8c1f"
	s.env = []string{"ACCEPTANCE_VARIABLE=" + variable}
	s.args = append(s.args, "--env", "ACCEPTANCE_VARIABLE", "--log_level", "debug")
	c := s.start(t)
	c.initialize()
	// The command names neither secret: it would show them in its own argv.
	call := c.codex(`[[exec: until [ -e go-on ]; do sleep 0.1; done; case "$ACCEPTANCE_VARIABLE" in variable-*-8c1f) echo has-the-variable;; esac; grep -c secret- "$CODEX_HOME/auth.json"]]`,
		map[string]any{"sandbox": "danger-full-access"})
	c.until(func(r reply) bool {
		return r.Method == "codex/event" && bytes.Contains(r.Params, []byte("exec_command_begin"))
	})
	container := s.look(t, c.cmd.Process.Pid).containers
	require.Len(t, container, 1)
	id, _, _ := strings.Cut(container[0], " ") // its state follows
	seen := map[string]string{
		"docker inspect": output(t, "docker", "inspect", id),
		"docker ps": output(t, "docker", "ps", "--no-trunc", "--filter", "id="+id,
			"--format", "{{.Command}} {{.Labels}} {{.Names}}"),
		"image history": output(t, "docker", "history", "--no-trunc", s.image),
		"argv":          output(t, "ps", "-eo", "args"),
	}
	s.put(t, "go-on", "", 0o644)
	answer := c.answer(call).text()
	require.Contains(t, answer, "has-the-variable", "the variable must be inside, or its absence elsewhere shows nothing")
	require.NoError(t, c.in.Close())
	require.Zero(t, c.exit())
	seen["stderr at debug level"] = c.stderr.String()
	seen["engine's log"] = engineLog(t)
	for where, text := range seen {
		require.NotEmpty(t, text, where)
		require.NotContains(t, text, s.secret, where)
		require.NotContains(t, text, variable, where)
	}
	require.Empty(t, s.copies(t), "copies on disk")
	for _, secret := range []string{s.secret, variable} {
		out, _ := exec.Command("grep", "-rlF", "--", secret, "/var/lib/docker/containers").Output()
		require.Empty(t, string(out), "the engine's directory of containers")
	}
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	require.NoError(t, err, "%s %v: %s", name, args, said.String())
	return string(out)
}

// engineLog is what the engine wrote: to the file that its stderr is, or to the
// journal.
func engineLog(t *testing.T) string {
	t.Helper()
	pid := strings.Fields(output(t, "pidof", "dockerd"))[0]
	path, err := os.Readlink("/proc/" + pid + "/fd/2")
	require.NoError(t, err)
	if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(b)
	}
	return output(t, "journalctl", "-q", "-u", "docker", "--no-pager")
}
