package acceptance

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite docs/reference.md from the program")

var docsTop = filepath.Join("..", "..", "..")

// help is what the program prints for its user.
func help(t *testing.T, command ...string) string {
	t.Helper()
	cmd := exec.Command(built.agents, append(command, "--help")...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	out, err := cmd.Output()
	require.NoError(t, err, "%v --help", command)
	return string(out)
}

var (
	serverCommand = regexp.MustCompile(`(?m)^  ([a-z]+) +[a-z]`)
	subCommand    = regexp.MustCompile(`(?ms)^Available Commands:\n(.*?)\n\n`)
	longFlag      = regexp.MustCompile(`--[a-z][a-z0-9_-]*`)
	variable      = regexp.MustCompile(`\bMCP_AGENTS_[A-Z0-9_]+`)
	toolName      = regexp.MustCompile("`((?:codex-|gemini-|claude[-_])[a-z_-]+)`")
	startedAs     = regexp.MustCompile(`\bmcp-agents ([a-z]+)\b(?: ([a-z]+)\b)?`)
)

// surface is all of the program that a user can name.
type surface struct {
	commands []string // "images", "images build"
	helps    map[string]string
	tools    map[string][]string // by provider
	flags    map[string]bool     // with hyphens
	vars     map[string]bool     // environment variables
}

func surfaceOf(t *testing.T) surface {
	t.Helper()
	s := surface{helps: map[string]string{"": help(t)}, tools: map[string][]string{}, flags: map[string]bool{}, vars: map[string]bool{}}
	_, rest, found := strings.Cut(s.helps[""], "\nCommands:\n")
	require.True(t, found)
	section, _, _ := strings.Cut(rest, "\n\n")
	for _, m := range serverCommand.FindAllStringSubmatch(section, -1) {
		s.addCommand(t, m[1])
	}
	for _, provider := range []string{"codex", "claude", "gemini"} {
		s.tools[provider] = toolsOf(t, provider)
	}
	for _, name := range slices.Sorted(maps.Keys(s.helps)) {
		for _, v := range variable.FindAllString(s.helps[name], -1) {
			s.vars[v] = true
		}
		for _, f := range longFlag.FindAllString(s.helps[name], -1) {
			s.flags[strings.ReplaceAll(f, "_", "-")] = true
		}
	}
	return s
}

func (s *surface) addCommand(t *testing.T, words ...string) {
	t.Helper()
	name := strings.Join(words, " ")
	s.commands = append(s.commands, name)
	s.helps[name] = help(t, words...)
	if section := subCommand.FindStringSubmatch(s.helps[name]); section != nil {
		for _, m := range serverCommand.FindAllStringSubmatch(section[1], -1) {
			s.addCommand(t, append(words, m[1])...)
		}
	}
}

// toolsOf lists a provider's tools. No engine is needed for that.
func toolsOf(t *testing.T, provider string) (names []string) {
	t.Helper()
	s := newSetting(t, "docker", "mcp-agents-test/none:1")
	s.engine, s.args = "unix://"+s.login+"/no-engine.sock", []string{"--provider", provider}
	c := s.start(t)
	c.initialize()
	r := c.answer(c.request("tools/list", map[string]any{}))
	require.Nil(t, r.Error)
	var list struct {
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	require.NoError(t, json.Unmarshal(r.Result, &list))
	require.NotEmpty(t, list.Tools)
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// reference is docs/reference.md.
func (s surface) reference() string {
	var b strings.Builder
	b.WriteString("# Reference\n\nEvery tool, command, flag and environment variable, as the program tells them. Written by\n" +
		"`go test ./internal/e2e/acceptance -run TestDocs -update`.\n\n## Tools\n\n")
	for _, provider := range []string{"codex", "claude", "gemini"} {
		fmt.Fprintf(&b, "- %s: `%s`\n", provider, strings.Join(s.tools[provider], "`, `"))
	}
	fmt.Fprintf(&b, "\n## The server\n\n```\n%s```\n", s.helps[""])
	for _, name := range s.commands {
		fmt.Fprintf(&b, "\n## mcp-agents %s\n\n```\n%s```\n", name, s.helps[name])
	}
	return b.String()
}

// documents are the texts that users read, by their names.
func documents(t *testing.T) map[string]string {
	t.Helper()
	docs := map[string]string{}
	for _, pattern := range []string{"*.md", "compose.yaml", "docs/*.md", "docs/decisions/*.md", "docs/examples/*"} {
		files, err := filepath.Glob(filepath.Join(docsTop, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			name, err := filepath.Rel(docsTop, file)
			require.NoError(t, err)
			docs[name] = string(b)
		}
	}
	return docs
}

// notOurs are the flags of other programs that the documents show, the
// variables of the compose file and of the suites, and those that the program
// sets for what runs inside a sandbox.
var notOurs = map[string]bool{"--rm": true, "--no-performance-crux": true, "MCP_AGENTS_SANDBOX": true, "MCP_AGENTS_AGY_TOKEN": true, "MCP_AGENTS_ROUNDS": true,
	"MCP_AGENTS_VERSION": true, "MCP_AGENTS_DOCKER_SOCKET": true, "MCP_AGENTS_TEST_IMAGE_CODEX": true, "MCP_AGENTS_REQUIRE_ENGINE": true, "MCP_AGENTS_FULL": true,
	// Chromium's, in the example of a lease helper.
	"--headless": true, "--remote-debugging-port": true, "--user-data-dir": true, "--window-size": true, "--no-first-run": true,
	"--no-default-browser-check": true, "--disable-background-networking": true, "--disable-component-update": true, "--disable-sync": true}

// hiddenCommands are named in the documents though the help does not list them.
var hiddenCommands = []string{"model", "demo"}

// The reference is what the program says, and every document names only what
// there is.
func TestDocsNameWhatThereIs(t *testing.T) {
	s := surfaceOf(t)
	path := filepath.Join(docsTop, "docs", "reference.md")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(s.reference()), 0o644))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, s.reference(), string(got), "docs/reference.md is not what the program says: run this test with -update")

	for name, text := range documents(t) {
		if name == filepath.Join("docs", "reference.md") {
			continue // it is what the others are compared with
		}
		for _, fault := range s.faults(text) {
			t.Errorf("%s names %s, which there is not", name, fault)
		}
	}
}

// faults are the names in a text that stand for nothing.
func (s surface) faults(text string) (faults []string) {
	for _, f := range longFlag.FindAllString(text, -1) {
		if f = strings.TrimRight(f, "-_"); !s.flags[strings.ReplaceAll(f, "_", "-")] && !notOurs[f] {
			faults = append(faults, f)
		}
	}
	for _, v := range variable.FindAllString(text, -1) {
		if !s.vars[v] && !notOurs[v] {
			faults = append(faults, v)
		}
	}
	all := slices.Concat(slices.Collect(maps.Values(s.tools))...)
	for _, m := range toolName.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(all, m[1]) && !slices.Contains([]string{"claude-code", "codex-cli"}, m[1]) { // a client, and what Codex calls itself
			faults = append(faults, m[0])
		}
	}
	for _, code := range codeIn(text) {
		for _, m := range startedAs.FindAllStringSubmatch(code, -1) {
			if !slices.Contains(s.commands, m[1]) && !slices.Contains(hiddenCommands, m[1]) {
				faults = append(faults, m[0])
			} else if m[1] == "images" && m[2] != "" && !slices.Contains(s.commands, m[1]+" "+m[2]) {
				faults = append(faults, m[0])
			}
		}
	}
	return faults
}

var inline = regexp.MustCompile("`([^`\n]+)`")

// codeIn are the code blocks and spans of a text.
func codeIn(text string) (code []string) {
	for _, m := range fenced.FindAllStringSubmatch(text, -1) {
		// What follows a # explains, and the first line of a help names the program.
		for line := range strings.Lines(m[2]) {
			line, _, _ = strings.Cut(line, "#")
			code = append(code, line)
		}
	}
	for _, m := range inline.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		code = append(code, m[1])
	}
	return code
}

// What a user looks for in README is there: every command and every tool. All
// flags and variables are in the reference, which README leads to.
func TestDocsNameEverything(t *testing.T) {
	s, readme := surfaceOf(t), documents(t)["README.md"]
	require.True(t, strings.Contains(readme, "(docs/reference.md)"), "README leads to the reference")
	for _, name := range s.commands {
		assert.True(t, strings.Contains(readme, "mcp-agents "+name), "README names no command %s", name)
	}
	for provider, tools := range s.tools {
		for _, tool := range tools {
			assert.True(t, strings.Contains(readme, "`"+tool+"`"), "README names no tool %s of %s", tool, provider)
		}
	}
	// Variables that the sources read are in a help text, but for the tests' and the rare tunables.
	for _, name := range readVariables(t) {
		assert.True(t, s.vars[name] || notOurs[name], "the program reads %s and no help names it", name)
	}
}

// readVariables are the variables of ours that the sources name.
func readVariables(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(docsTop, "internal"), func(path string, e os.DirEntry, err error) error {
		if e.IsDir() && e.Name() == "testkit" {
			return filepath.SkipDir // what only tests read
		}
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, name := range regexp.MustCompile(`"(MCP_AGENTS_[A-Z0-9_]*[A-Z0-9])"`).FindAllStringSubmatch(string(b), -1) {
			if !strings.HasPrefix(name[1], "MCP_AGENTS_TEST_") && !slices.Contains(names, name[1]) {
				names = append(names, name[1])
			}
		}
		return err
	})
	require.NoError(t, err)
	require.NotEmpty(t, names)
	return names
}

// The check finds what it is for.
func TestDocsCheckCanFail(t *testing.T) {
	s := surfaceOf(t)
	for _, text := range []string{"use --no_such_flag", "MCP_AGENTS_NO_SUCH", "MCP_AGENTS_WORKSPAC", "MCP_AGENTS_WORKSPACES", "`codex-nothing`", "`mcp-agents nothing`", "```\nmcp-agents nothing\n```\n",
		"`mcp-agents images nothing`"} {
		assert.Len(t, s.faults(text), 1, text)
	}
	assert.Empty(t, s.faults("`mcp-agents images build` with --workspace-access=ro, MCP_AGENTS_WORKSPACE and `codex-peek`; mcp-agents nothing in prose"))
}
