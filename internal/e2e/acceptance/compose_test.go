package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/credentials"
	"mcpagents/internal/provider/gemini"
	"mcpagents/internal/testkit/frontend"
	"mcpagents/internal/testkit/images"
	"mcpagents/internal/testkit/wait"
)

// composeCommand is the docker compose command: that of MCP_AGENTS_TEST_COMPOSE,
// else the docker command's own.
func composeCommand(t *testing.T) []string {
	t.Helper()
	if path := os.Getenv("MCP_AGENTS_TEST_COMPOSE"); path != "" {
		return []string{path}
	}
	if exec.Command("docker", "compose", "version").Run() != nil {
		t.Skip("there is no docker compose: `make test-compose` builds one")
	}
	return []string{"docker", "compose"}
}

// composed starts a service of compose.yaml for a client in the workspace, or
// with MCP_AGENTS_WORKSPACE in the setting for one in any place. Only the image's
// name is another one, which knows a model, its network and the sandbox's image.
func (s *setting) composed(t *testing.T, service, image string, flags ...string) *client {
	t.Helper()
	dir, home := t.TempDir(), t.TempDir()
	makeLogins(t, home, s.secret)
	require.NoError(t, os.Mkdir(filepath.Join(home, ".gemini"), 0o700))
	override := filepath.Join(dir, "image.yaml")
	require.NoError(t, os.WriteFile(override, []byte("services:\n  "+service+":\n    image: "+image+"\n"), 0o644))
	file, err := filepath.Abs(filepath.Join("..", "..", "..", "compose.yaml"))
	require.NoError(t, err)
	argv := append(composeCommand(t), "-f", file, "-f", override, "run", "--rm", "-T")
	argv = append(append(argv, flags...), service)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = s.workspace
	// What the user of this machine has set must not reach it: the front end is
	// root, and a login's directory is mounted to be written.
	cmd.Env = append(os.Environ(), "HOME="+home, "CODEX_HOME=", "CLAUDE_CONFIG_DIR=", "MCP_AGENTS_WORKSPACE=", "MCP_AGENTS_DOCKER_SOCKET=",
		"PWD="+s.workspace)
	for _, name := range slices.Concat(credentials.Codex("").KeyVariables, credentials.ClaudeKeyVariables, gemini.KeyVariables) {
		cmd.Env = append(cmd.Env, name+"=")
	}
	cmd.Env = append(cmd.Env, s.env...)
	return s.startCommand(t, cmd)
}

// The services of compose.yaml, each as a client starts it: a turn of the real
// Codex and Claude Code, the tools of gemini, a look at a borrowed browser.
func TestComposeServices(t *testing.T) {
	composeCommand(t)
	of := map[string]string{"codex": images.Codex(t), "claude": images.Claude(t), "gemini": images.Codex(t), "browser": fakeBrowserImage(t)}
	for service, turn := range map[string]func(c *client) string{
		"codex": func(c *client) string {
			text := c.turn("[[exec: echo made >made.txt; pwd]]", nil)
			require.True(c.t, exists(c.s.workspace, "made.txt"), "the workspace is the one outside")
			require.Len(c.t, sharing(c.t, c.s.workspace), 2, "the front end and its sandbox")
			return text
		},
		"claude": func(c *client) string {
			c.s.put(c.t, "notes.txt", "the workspace says hello\n", 0o644)
			return c.tool("claude_code", map[string]any{"prompt": "[[read: " + c.s.workspace + "/notes.txt]]"}).text
		},
		"gemini":  func(c *client) string { return string(c.answer(c.request("tools/list", map[string]any{})).Result) },
		"browser": func(c *client) string { return c.tool("look", map[string]any{}).text },
	} {
		t.Run(service, func(t *testing.T) {
			m := frontend.StartModel(t, built.agents, images.Codex(t))
			s := newSetting(t, "docker", of[service])
			c := s.composed(t, service, frontEndImage(t, m, of[service]))
			c.initialize()
			want := map[string]string{"codex": s.workspace, "claude": "last tool output: 1\tthe workspace says hello", "gemini": `"name":"gemini"`, "browser": "/devtools/browser/"}[service]
			require.Contains(t, turn(c), want)
			require.NotEmpty(t, sharing(t, s.workspace), "the check for what is left sees the front end")
			closeInput(c)
			require.Zero(t, c.exit(), c.stderr.String())
			wait.Until(t, func() bool { return len(sharing(t, s.workspace)) == 0 })
		})
	}
}

// However the compose command ends during a turn, the front end and its sandbox
// end too.
func TestComposeEnds(t *testing.T) {
	composeCommand(t)
	image := images.Codex(t)
	for name, end := range map[string]func(*client){
		"client closes its input": closeInput,
		"SIGTERM":                 signalled(syscall.SIGTERM),
		"SIGKILL":                 kill,
	} {
		t.Run(name, func(t *testing.T) {
			m := frontend.StartModel(t, built.agents, image)
			s := newSetting(t, "docker", image)
			s.env = []string{"MCP_AGENTS_WORKSPACE=" + s.workspace}
			c := s.composed(t, "codex", frontEndImage(t, m, image), "-e", "MCP_AGENTS_CODEX_CLIENT_GONE_GRACE_MS=200")
			c.initialize()
			c.codex("[[exec: sleep 600]]", nil)
			c.until(func(r reply) bool {
				return r.Method == "codex/event" && strings.Contains(string(r.Params), "exec_command_begin")
			})
			require.Len(t, sharing(t, s.workspace), 2, "the front end and its sandbox")
			end(c)
			wait.Until(t, func() bool { return len(sharing(t, s.workspace)) == 0 }, "containers are left")
			c.exit()
		})
	}
}
