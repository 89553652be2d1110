package acceptance

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/testkit/frontend"
	"mcpagents/internal/testkit/images"
	"mcpagents/internal/testkit/wait"
)

// documented is a line of the documentation that starts the server in a
// container.
type documented struct {
	file  string
	argv  []string // from JSON or TOML, with the client's variables as they stand
	shell string   // or a line for a shell
}

var fenced = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// documentedLines are all of README and docs/examples.
func documentedLines(t *testing.T) []documented {
	t.Helper()
	top := filepath.Join("..", "..", "..")
	files, err := filepath.Glob(filepath.Join(top, "docs", "examples", "*.md"))
	require.NoError(t, err)
	var lines []documented
	for _, file := range append(files, filepath.Join(top, "README.md")) {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		name, before := filepath.Base(file), len(lines)
		for _, block := range fenced.FindAllStringSubmatch(string(b), -1) {
			found, missed := linesOf(t, name, block[1], block[2])
			require.Empty(t, missed, "%s has lines that nothing starts: write them as docker run -i, in JSON, in TOML or for a shell", name)
			lines = append(lines, found...)
		}
		require.NotRegexp(t, `(?m)^\s*docker (container )?run `, fenced.ReplaceAllString(string(b), ""), "%s: in no block that is read", name)
		if name != "browser-over-ssh.md" { // its server runs on the machine itself
			require.Greater(t, len(lines), before, "%s documents no docker run line", name)
		}
	}
	return lines
}

// linesOf are the lines of one code block that start the server, and those that
// name docker run in a form that it does not know. One call of `mcp-agents call`
// starts no server.
func linesOf(t *testing.T, file, language, text string) (lines []documented, missed []string) {
	t.Helper()
	type entry struct {
		Command string   `json:"command" toml:"command"`
		Args    []string `json:"args" toml:"args"`
	}
	var config struct {
		Claude map[string]entry `json:"mcpServers" toml:"-"`
		Code   map[string]entry `json:"servers" toml:"-"`
		Codex  map[string]entry `json:"-" toml:"mcp_servers"`
	}
	switch language {
	case "json":
		require.NoError(t, json.Unmarshal([]byte(text), &config), "%s:\n%s", file, text)
	case "toml":
		require.NoError(t, toml.Unmarshal([]byte(text), &config), "%s:\n%s", file, text)
	default:
		for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
			switch shell := language == "" || language == "sh" || language == "console"; {
			case !dockerRun.MatchString(line) || strings.Contains(line, " mcp-agents call "):
			case shell && strings.HasPrefix(line, "docker run -i "):
				lines = append(lines, documented{file: file, shell: strings.TrimSpace(line)})
			default:
				missed = append(missed, line)
			}
		}
	}
	for _, entries := range []map[string]entry{config.Claude, config.Code, config.Codex} {
		for _, e := range entries {
			if e.Command == "docker" {
				lines = append(lines, documented{file: file, argv: append([]string{e.Command}, e.Args...)})
			}
		}
	}
	if named := dockerEntry.FindAllString(text, -1); len(named) != len(lines) && (language == "json" || language == "toml") {
		missed = append(missed, named...)
	}
	return lines, missed
}

var (
	dockerRun   = regexp.MustCompile(`\bdocker (container )?run\b`)
	dockerEntry = regexp.MustCompile(`"?command"?\s*[:=]\s*\[?\s*"docker"`)
)

// A line that starts a container in a form that linesOf does not know is no line
// that nobody tests.
func TestDocumentedLinesAreTaken(t *testing.T) {
	require.NotEmpty(t, documentedLines(t)) // also where no engine starts them
	for name, tt := range map[string]struct {
		language, text string
		lines, missed  int
	}{
		"a shell's":          {"", "docker run -i --rm \\\n  mcp-agents\n", 1, 0},
		"a shell's, named":   {"sh", "docker run -i --rm mcp-agents\n", 1, 0},
		"a call":             {"", "docker run -i mcp-agents call codex\n", 0, 0},
		"another order":      {"", "docker run --rm -i mcp-agents\n", 0, 1},
		"behind a variable":  {"sh", "A=b docker run -i mcp-agents\n", 0, 1},
		"YAML":               {"yaml", "run: docker run -i mcp-agents\n", 0, 1},
		"JSON":               {"json", `{"mcpServers": {"codex": {"command": "docker", "args": ["run"]}}}`, 1, 0},
		"JSON of elsewhere":  {"json", `{"mcp": {"codex": {"command": "docker", "args": ["run"]}}}`, 0, 1},
		"TOML of elsewhere":  {"toml", "[mcp.codex]\ncommand = \"docker\"\n", 0, 1},
		"no docker run line": {"", "docker ps\nmcp-agents ps\n", 0, 0},
	} {
		lines, missed := linesOf(t, "a.md", tt.language, tt.text)
		require.Len(t, lines, tt.lines, name)
		require.Len(t, missed, tt.missed, name)
	}
}

// provider is the one that the line starts.
func (d documented) provider() string {
	if slices.Contains(d.argv, "claude") || strings.Contains(d.shell, "--provider claude") {
		return "claude"
	}
	return "codex"
}

// command is what a client runs: the line with its variables expanded as that
// client does, or the shell's. Only the image's name is another one.
func (d documented) command(home, project, image string) []string {
	if d.shell != "" {
		return []string{"sh", "-c", strings.Replace(d.shell, " mcp-agents ", " "+image+" ", 1)}
	}
	expand := strings.NewReplacer("${HOME}", home, "${userHome}", home, "${PWD}", project, "${workspaceFolder}", project,
		"/home/me/project", project, "/home/me", home)
	argv := make([]string, len(d.argv))
	for i, arg := range d.argv {
		if argv[i] = expand.Replace(arg); arg == "mcp-agents" {
			argv[i] = image
		}
	}
	return argv
}

// frontEndImage is the image mcp-agents with a model, a network and a sandbox's
// image in its environment, since the documented lines know of none of them.
func frontEndImage(t *testing.T, m frontend.Model, sandboxImage string) string {
	t.Helper()
	dir, tag := t.TempDir(), "mcp-agents-test/documented:"+strings.ToLower(filepath.Base(m.Network[len("container:"):][:12]))
	text := "FROM " + images.FrontEnd() + "\nENV MCP_AGENTS_NETWORK=" + m.Network + " MCP_AGENTS_MODEL_BASE_URL=" + m.URL + " MCP_AGENTS_IMAGE=" + sandboxImage + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(text), 0o644))
	out, err := exec.Command("docker", "build", "-q", "-t", tag, dir).CombinedOutput()
	require.NoError(t, err, string(out))
	t.Cleanup(func() { _ = exec.Command("docker", "rmi", tag).Run() })
	return tag
}

// Each documented line serves a client that has the docker command, the
// engine's socket and nothing else, and runs a turn.
func TestDocumentedDockerRunLines(t *testing.T) {
	images := map[string]string{"codex": images.Codex(t), "claude": images.Claude(t)}
	dockerCommand, err := exec.LookPath("docker")
	require.NoError(t, err)
	dockerCommand, err = filepath.EvalSymlinks(dockerCommand)
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, line := range documentedLines(t) {
		provider := line.provider()
		seen[line.file+" "+provider] = true
		t.Run(line.file+" "+provider, func(t *testing.T) {
			m := frontend.StartModel(t, built.agents, images[provider])
			s := newSetting(t, "docker", images[provider])
			image := frontEndImage(t, m, images[provider])
			home := t.TempDir()
			makeLogins(t, home, s.secret)

			// The client's container. What it mounts into others are paths of the engine's machine.
			argv := []string{"run", "-i", "--rm", "--network", "none", "-v", "/var/run/docker.sock:/var/run/docker.sock",
				"-v", dockerCommand + ":/usr/local/bin/docker:ro", "-e", "HOME=" + home, "-e", "PROJECT=" + s.workspace,
				"--entrypoint", "sh", images["codex"], "-c", `mkdir -p "$PROJECT" && cd "$PROJECT" && exec "$@"`, "client"}
			cmd := exec.Command("docker", append(argv, line.command(home, s.workspace, image)...)...)
			cmd.Dir = s.workspace
			c := s.startCommand(t, cmd)
			c.initialize()
			c.checkTools(provider)
			if provider == "claude" {
				a := c.tool("claude_code", map[string]any{"prompt": "[[text: a turn in a documented container]]"})
				require.False(t, a.IsError, a.text)
				require.Contains(t, a.text, "a turn in a documented container")
			} else {
				require.Contains(t, c.turn("[[exec: echo made >made.txt; pwd]]", nil), s.workspace)
				require.True(t, exists(s.workspace, "made.txt"), "the workspace is the one outside")
				require.NotEmpty(t, sharing(t, s.workspace), "the check for what is left sees the sandbox")
			}
			require.NoError(t, c.in.Close())
			require.Zero(t, c.exit(), c.stderr.String())
			wait.Until(t, func() bool { return len(sharing(t, s.workspace)) == 0 })
		})
	}
	for _, want := range []string{"README.md codex", "claude-code.md codex", "cursor.md codex", "vscode.md codex", "gemini.md codex", "codex.md claude"} {
		require.True(t, seen[want], want)
	}
}

// makeLogins makes the user's logins, as the CLIs leave them.
func makeLogins(t *testing.T, home, secret string) {
	t.Helper()
	for name, text := range map[string]string{
		".codex/auth.json": `{"OPENAI_API_KEY":"` + secret + `"}`,
		".claude/.credentials.json": `{"claudeAiOauth":{"accessToken":"` + secret +
			`","refreshToken":"r","expiresAt":4102444800000,"scopes":["user:inference"],"subscriptionType":"max"}}`,
	} {
		path := filepath.Join(home, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

// checkTools lists the tools and looks for the provider's first one.
func (c *client) checkTools(provider string) {
	c.t.Helper()
	r := c.answer(c.request("tools/list", map[string]any{}))
	require.Nil(c.t, r.Error)
	want := map[string]string{"codex": `"name":"codex"`, "claude": `"name":"claude_code"`}[provider]
	require.Contains(c.t, string(r.Result), want)
}

// sharing are the containers that see a directory of this machine.
func sharing(t *testing.T, dir string) []string {
	t.Helper()
	return strings.Fields(output(t, "docker", "ps", "-a", "-q", "--filter", "volume="+dir))
}
