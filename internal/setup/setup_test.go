package setup

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files")

// machine is a home and a project of a test.
type machine struct {
	t         *testing.T
	home, dir string
}

func newMachine(t *testing.T) machine {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	m := machine{t, filepath.Join(root, "home"), filepath.Join(root, "project")}
	require.NoError(t, errors.Join(os.Mkdir(m.home, 0o755), os.Mkdir(m.dir, 0o755)))
	return m
}

func (m machine) request(client string) Request {
	return Request{Client: client, Dir: m.dir, Home: m.home, Binary: "/usr/local/bin/mcp-agents", Getenv: func(string) string { return "" }}
}

// path is the file that a request is about.
func (m machine) path(req Request) string {
	m.t.Helper()
	_, _, where, err := resolve(&req)
	require.NoError(m.t, err)
	return where.path
}

// put writes the file of a request.
func (m machine) put(req Request, data []byte) string {
	m.t.Helper()
	path := m.path(req)
	require.NoError(m.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(m.t, os.WriteFile(path, data, 0o644))
	return path
}

// stable replaces this test's directories by those of the documentation.
func (m machine) stable(b []byte) string {
	return strings.NewReplacer(m.home, "/home/me", m.dir, "/home/me/project").Replace(string(b))
}

// contents is the file, or nil if there is none.
func contents(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	if b == nil {
		b = []byte{}
	}
	return b
}

// golden compares with a file of testdata; nil is its absence.
func golden(t *testing.T, path string, got []byte, text string) {
	t.Helper()
	if *update {
		if got == nil {
			_ = os.Remove(path)
			return
		}
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return
	}
	want := contents(t, path)
	require.Equal(t, want == nil, got == nil, "the file exists")
	require.Equal(t, string(want), text)
}

// goldenRequest is the request of a case; its name says what is special.
func (m machine) goldenRequest(client, name string) Request {
	req := m.request(client)
	req.User = strings.Contains(name, "user")
	req.Docker = strings.HasSuffix(name, "docker")
	if strings.HasSuffix(name, "gemini") {
		req.Provider = "gemini"
	}
	return req
}

func TestGolden(t *testing.T) {
	cases, err := filepath.Glob("testdata/*/*")
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	for _, dir := range cases {
		client, name := filepath.Base(filepath.Dir(dir)), filepath.Base(dir)
		if client == "fuzz" || client == "script" {
			continue
		}
		t.Run(client+"/"+name, func(t *testing.T) {
			m := newMachine(t)
			req := m.goldenRequest(client, name)
			original := contents(t, filepath.Join(dir, "original"))
			path := m.path(req)
			if original != nil {
				m.put(req, original)
			}
			out, err := Run(req)
			require.NoError(t, err)
			assert.Equal(t, "added", out.Action)
			added := contents(t, path)
			golden(t, filepath.Join(dir, "after-add"), added, m.stable(added))

			again, err := Run(req)
			require.NoError(t, err)
			assert.Equal(t, "unchanged", again.Action)
			assert.Empty(t, again.Diff)
			assert.Equal(t, added, contents(t, path), "adding twice changes nothing")

			req.Remove = true
			out, err = Run(req)
			require.NoError(t, err)
			assert.Equal(t, "removed", out.Action)
			removed := contents(t, path)
			golden(t, filepath.Join(dir, "after-del"), removed, m.stable(removed))
			assert.Equal(t, original, removed, "the original bytes are back, or no file where none was")
			if original == nil && !req.User && client != "claude-code" && client != "codex" {
				assert.NoDirExists(t, filepath.Dir(path))
			}
			out, err = Run(req)
			require.NoError(t, err)
			assert.Equal(t, "not there", out.Action)
		})
	}
}

func TestEveryProviderInEveryClient(t *testing.T) {
	for _, c := range Clients() {
		for _, s := range services {
			for _, docker := range []bool{false, true} {
				m := newMachine(t)
				req := m.request(c.Name)
				req.Provider, req.Docker = s.provider, docker
				require.NoError(t, os.MkdirAll(m.home+"/.codex", 0o700))
				_, err := Run(req)
				require.NoError(t, err, "%s %s", c.Name, s.provider)
				list, err := c.format.entries(contents(t, m.path(req)))
				require.NoError(t, err)
				require.Len(t, list, 1)
				assert.Equal(t, s.entry, list[0].name)
				assert.True(t, startsUs(list[0].value, s.provider))
				for _, other := range services {
					assert.Equal(t, other.provider == s.provider, startsUs(list[0].value, other.provider))
				}
			}
		}
	}
}

func TestRefusedAndUntouched(t *testing.T) {
	for name, tc := range map[string]struct{ client, text, want string }{
		"garbage":           {"claude-code", "{", "line 1: a name in double quotes is expected here"},
		"array":             {"claude-code", "[]\n", "no JSON object"},
		"null":              {"claude-code", "null", "no JSON object"},
		"two values":        {"claude-code", "{}\n{}", "line 2: something follows"},
		"comment":           {"claude-code", "{\n// c\n}", "line 2: comments are not allowed"},
		"trailing comma":    {"gemini", "{\"a\": 1,\n}", "line 2: a comma before } is not allowed"},
		"open comment":      {"vscode", "{} /* x", "line 1: a comment is not closed"},
		"servers null":      {"vscode", `{"servers": null}`, `"servers" is no object`},
		"servers twice":     {"vscode", "{\"servers\": {},\n\"s\\u0065rvers\": {}}", `line 2: a second "servers"`},
		"entry twice":       {"cursor", "{\"mcpServers\": {\"codex\": {},\n\"codex\": {}}}", "holds 2 entries named \"codex\" (lines 1 and 2)"},
		"other content":     {"cursor", `{"mcpServers": {"codex": {"command": "mcp-agents", "args": []}}}`, "with other content is there"},
		"control character": {"cursor", "{\"a\": \"x\ny\"}", "a string is not valid"},
		"number":            {"cursor", `{"a": 01}`, "a value is expected here"},
		"comment at end":    {"vscode", "// no line break", "does not fit in"},
		"toml":              {"codex", "a = \n", "line 1:"},
		"toml twice":        {"codex", "a = 1\na = 2\n", "line 2:"},
		"toml inline":       {"codex", `mcp_servers = { x = { command = "y" } }`, "is an inline table"},
		"toml no table":     {"codex", "mcp_servers = 1\n", "is no table"},
		"toml other":        {"codex", "[mcp_servers.claude-code]\ncommand = \"x\"\n", "codex/config.toml:1: an entry \"claude-code\" with other content"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			path := m.put(m.request(tc.client), []byte(tc.text))
			_, err := Run(m.request(tc.client))
			require.ErrorContains(t, err, tc.want)
			assert.ErrorContains(t, err, path, "the file is named")
			assert.ErrorContains(t, err, "left as it is")
			assert.Equal(t, tc.text, string(contents(t, path)))
			left, err := os.ReadDir(filepath.Dir(path))
			require.NoError(t, err)
			assert.Len(t, left, 1, "no temporary file")
		})
	}
}

func TestForeignEntriesAreLeft(t *testing.T) {
	m := newMachine(t)
	req := m.request("cursor")
	text := `{"mcpServers": {"mine": {"command": "/opt/mcp-agents", "args": ["--provider=codex"]}, "c": {"command": "codex"}}}` + "\n"
	path := m.put(req, []byte(text))
	out, err := Run(req)
	require.NoError(t, err)
	require.Len(t, out.Notes, 1)
	assert.Contains(t, out.Notes[0], path+`:1: the entry "mine" starts mcp-agents --provider codex as well`)
	req.Remove = true
	_, err = Run(req)
	require.NoError(t, err)
	assert.Equal(t, text, string(contents(t, path)))

	foreign := `{"mcpServers": {"codex": {"command": "codex", "args": ["mcp-server"]}}}`
	m.put(req, []byte(foreign))
	_, err = Run(req)
	require.ErrorContains(t, err, "does not start mcp-agents")
	assert.Equal(t, foreign, string(contents(t, path)))
}

// A user's edits around and in the entry survive its removal, or go with it.
func TestRemoveAfterHandEdits(t *testing.T) {
	entry := `"codex": {"command": "mcp-agents", "args": ["--provider", "codex"], "timeout": 1}`
	for name, tc := range map[string]struct{ client, text, want string }{
		"first of two": {"cursor", "{\n  \"mcpServers\": {\n    " + entry + ",\n    \"b\": 1\n  }\n}\n",
			"{\n  \"mcpServers\": {\n    \"b\": 1\n  }\n}\n"},
		"first on a line": {"cursor", `{"mcpServers": {` + entry + `, "b": 1}}`, `{"mcpServers": {"b": 1}}`},
		"between comments": {"cursor", "{\"mcpServers\": {\n  \"a\": 1, // a\n  // mine\n  " + entry + ", // c\n  // b\n  \"b\": 1}}",
			"{\"mcpServers\": {\n  \"a\": 1, // a\n  // mine // c\n  // b\n  \"b\": 1}}"},
		"the client wrote it": {"claude-code", "{\n  \"mcpServers\": {\n    \"codex\": {\n      \"command\": \"mcp-agents\",\n      \"args\": [\n        \"--provider\",\n        \"codex\"\n      ]\n    }\n  }\n}",
			"{\n}"},
		"toml between": {"codex", "a = 1\n\n[mcp_servers.claude-code]\ncommand = \"mcp-agents\"\nargs = [\"--provider\", \"claude\"]\n# why\ntool_timeout_sec = 1 # one\n\n[b]\nc = 1\n\n[mcp_servers.claude-code.env]\nA = \"1\"\n",
			"a = 1\n\n[b]\nc = 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			req := m.request(tc.client)
			path := m.put(req, []byte(tc.text))
			req.Remove = true
			out, err := Run(req)
			require.NoError(t, err)
			assert.Equal(t, "removed", out.Action)
			assert.Equal(t, tc.want, string(contents(t, path)))
		})
	}
}

func TestRemoveRefusesWhatWouldLoseBytes(t *testing.T) {
	for name, tc := range map[string]struct{ client, text string }{
		"a comment would swallow": {"cursor", "{\"mcpServers\": { // c\n \"codex\": {\"command\": \"mcp-agents\"}, \"b\": 1}}"},
		"toml dotted":             {"codex", "[mcp_servers]\nclaude-code.command = \"mcp-agents\"\nclaude-code.args = [\"--provider\", \"claude\"]\n"},
		"toml inline":             {"codex", "[mcp_servers]\nclaude-code = { command = \"mcp-agents\", args = [\"--provider\", \"claude\"] }\n"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			req := m.request(tc.client)
			path := m.put(req, []byte(tc.text))
			req.Remove = true
			_, err := Run(req)
			require.ErrorContains(t, err, "left as it is")
			assert.Equal(t, tc.text, string(contents(t, path)))
		})
	}
}

// A key that is set where setup runs is no part of the entry. Where the server
// would not get it, that is said.
func TestKeysThatTheServerDoesNotGet(t *testing.T) {
	for _, tt := range []struct {
		client, provider string
		docker           bool
		set              []string
		note             string
	}{
		{"codex", "claude", false, []string{"ANTHROPIC_API_KEY"}, "the server does not get ANTHROPIC_API_KEY, set here: " +
			`a login file logs claude-code in, or the entry has env_vars = ["ANTHROPIC_API_KEY"]`},
		{"codex", "claude", true, []string{"ANTHROPIC_API_KEY"}, "the server does not get ANTHROPIC_API_KEY, set here: " +
			`a login file logs claude-code in, or the entry has env_vars = ["ANTHROPIC_API_KEY"] and "-e", "ANTHROPIC_API_KEY" in its args before the image`},
		{"codex", "gemini", false, []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, "the server does not get GEMINI_API_KEY and GOOGLE_API_KEY, set here: " +
			`a login file logs gemini in, or the entry has env_vars = ["GEMINI_API_KEY", "GOOGLE_API_KEY"]`},
		{"gemini", "codex", false, []string{"OPENAI_API_KEY"}, "the server does not get OPENAI_API_KEY, set here: " +
			`a login file logs codex in, or the entry has "env": {"OPENAI_API_KEY": "${OPENAI_API_KEY}"}`},
		{"cursor", "codex", true, []string{"CODEX_API_KEY", "OPENAI_API_KEY"}, "the server does not get CODEX_API_KEY and OPENAI_API_KEY, set here: " +
			`a login file logs codex in, or the entry has "-e", "CODEX_API_KEY", "-e", "OPENAI_API_KEY" in its args before the image`},
		{"cursor", "codex", false, []string{"OPENAI_API_KEY"}, ""},
		{"codex", "claude", false, []string{"OPENAI_API_KEY"}, ""}, // another provider's
		{"codex", "browser", true, []string{"OPENAI_API_KEY"}, ""},
	} {
		m := newMachine(t)
		req := m.request(tt.client)
		req.Provider, req.Docker = tt.provider, tt.docker
		_, err := Run(req)
		require.NoError(t, err)
		req.Getenv = func(name string) string {
			if slices.Contains(tt.set, name) {
				return "made-up-secret"
			}
			return ""
		}
		out, err := Run(req)
		require.NoError(t, err)
		assert.Equal(t, "unchanged", out.Action)
		assert.Equal(t, tt.note, strings.Join(out.Notes, "\n"))
		req.Docker = !req.Docker
		out, err = Run(req)
		require.ErrorContains(t, err, "with other content")
		assert.Empty(t, out.Notes, "nothing is known of another entry")
		req.Remove = true
		out, err = Run(req)
		require.NoError(t, err)
		assert.Empty(t, out.Notes)
	}
}

func TestDryRunWritesNothing(t *testing.T) {
	m := newMachine(t)
	req := m.request("vscode")
	req.DryRun = true
	out, err := Run(req)
	require.NoError(t, err)
	assert.NoDirExists(t, filepath.Join(m.dir, ".vscode"))
	assert.Contains(t, string(out.Diff), "--- /dev/null\n+++ "+out.Path+"\n@@ -0,0 +1,9 @@\n+{\n")

	req.DryRun = false
	_, err = Run(req)
	require.NoError(t, err)
	req.DryRun, req.Remove = true, true
	out, err = Run(req)
	require.NoError(t, err)
	assert.Contains(t, string(out.Diff), "+++ /dev/null\n")
	assert.FileExists(t, out.Path)
}

func TestUsage(t *testing.T) {
	for _, tc := range []struct {
		change func(*Request)
		want   string
	}{
		{func(r *Request) { r.Client = "emacs" }, `unknown client "emacs": use one of claude-code, codex, cursor, vscode, gemini`},
		{func(r *Request) { r.Provider = "x" }, `unknown provider "x": use one of codex, claude, gemini, browser`},
		{func(r *Request) { r.Client, r.User = "cursor", true }, "--user is for claude-code"},
	} {
		req := newMachine(t).request("claude-code")
		tc.change(&req)
		_, err := Run(req)
		var usage *UsageError
		require.ErrorAs(t, err, &usage)
		assert.ErrorContains(t, err, tc.want)
	}
}

func TestDirectoriesOfTheEnvironment(t *testing.T) {
	m := newMachine(t)
	for client, variable := range map[string]string{"codex": "CODEX_HOME", "claude-code": "CLAUDE_CONFIG_DIR"} {
		req := m.request(client)
		req.User = true
		req.Getenv = func(name string) string {
			if name == variable {
				return m.dir
			}
			return ""
		}
		out, err := Run(req)
		require.NoError(t, err)
		assert.Equal(t, m.dir, filepath.Dir(out.Path))
		req.Getenv = func(string) string { return "relative" }
		_, err = Run(req)
		assert.ErrorContains(t, err, "set "+variable+" to an absolute path")
	}
}
