package claude

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// testBlockingCall: the prompt goes in as it is, the answer comes out as it is.
func testBlockingCall(t *testing.T) {
	f := start(t, nil)
	a := f.call("claude_code", map[string]any{"prompt": script(f.record(), do("result", "text", "the answer\n")), "model": "x", "cwd": "/"})
	assert.JSONEq(t, `{"content":[{"type":"text","text":"the answer\n"}]}`, a.raw)
	assert.Contains(t, f.stderr.String(), "tools/call: ignoring unsupported args: cwd, model")
	runs := f.recorded()
	require.Len(t, runs, 1)
	assert.Equal(t, []string{"--model", "claude-opus-4-8", "--effort", "xhigh", "--no-session-persistence", "-p", "--output-format", "json",
		"--strict-mcp-config", "--settings", `{"disableAllHooks":true,"disableAgentView":true,"disableArtifact":true}`}, runs[0].Argv)
	assert.Equal(t, f.workspace, runs[0].Dir)
	assert.Equal(t, script(f.record(), do("result", "text", "the answer\n")), runs[0].Stdin, "the prompt as it is, to its end")
	assert.Contains(t, runs[0].Env, "NO_COLOR=1")
	assert.Contains(t, runs[0].Env, "ANTHROPIC_API_KEY=key-of-the-test")
	assert.NotContains(t, f.stderr.String(), "the answer", "no prompt and no answer in a log")
}

// TestOuterSession: variables of a session that this server runs in do not
// reach Claude Code, and those of its login do.
func TestOuterSession(t *testing.T) {
	t.Setenv("CLAUDECODE", "1")
	t.Setenv("CLAUDE_CODE_ENTRYPOINT", "cli")
	t.Setenv("NAMED_BY_THE_OPERATOR", "yes")
	f := start(t, func(c *Config) {
		c.Launcher.Env = []string{"NAMED_BY_THE_OPERATOR"}
		c.BaseURL = "http://127.0.0.1:1/v1/"
	})
	f.call("claude_code", map[string]any{"prompt": script(f.record(), do("result", "text", "ok"))})
	env := strings.Join(f.recorded()[0].Env, "\n") + "\n"
	for _, name := range []string{"CLAUDECODE=", "CLAUDE_CODE_ENTRYPOINT="} {
		assert.NotContains(t, env, name)
	}
	assert.Contains(t, env, "NAMED_BY_THE_OPERATOR=yes\n")
	assert.Contains(t, env, "ANTHROPIC_BASE_URL=http://127.0.0.1:1\n")
	assert.Contains(t, env, "CLAUDE_CONFIG_DIR="+f.homes)
}

func TestTrustedWorkspace(t *testing.T) {
	for name, tt := range map[string]struct {
		trust, settings bool
		want, wantNot   string
	}{
		"no settings":           {false, false, "--strict-mcp-config", "--setting-sources"},
		"settings":              {false, true, "--setting-sources user", "xx"},
		"settings, but trusted": {true, true, "--output-format json", "--strict-mcp-config"},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, func(c *Config) { c.TrustWorkspace = tt.trust })
			if tt.settings {
				require.NoError(t, os.Mkdir(filepath.Join(f.workspace, ".claude"), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(f.workspace, ".claude", "settings.local.json"), []byte("{}"), 0o644))
			}
			f.call("claude_code", map[string]any{"prompt": script(f.record(), do("result", "text", "ok"))})
			f.over(f.review(script(f.record(), do("result", "text", "ok"))))
			runs := f.recorded()
			require.Len(t, runs, 2)
			line := strings.Join(runs[0].Argv, " ")
			assert.Contains(t, line, tt.want)
			assert.NotContains(t, line, tt.wantNot)
			sources := "project"
			if tt.settings && !tt.trust {
				sources = "user"
			}
			assert.Contains(t, strings.Join(runs[1].Argv, " "), "--setting-sources "+sources+" --settings")
		})
	}
}

// TestFailureShapes: what the CLI says of its result decides, then its exit,
// then whether there is any word. Words never do.
func TestFailureShapes(t *testing.T) {
	f := start(t, nil)
	exits := map[string]map[string]any{
		"exit 0": do("exit", "code", 0), "exit 1": do("exit", "code", 1), "exit 137": do("exit", "code", 137), "killed": do("signal", "code", 9),
	}
	failures := map[string]string{"exit 0": "", "exit 1": "claude failed: exit code 1", "exit 137": "claude failed: exit code 137",
		"killed": "claude failed: killed by SIGKILL"}
	const limits = "rate limit: error 429, please run /login"
	for _, exit := range []string{"exit 0", "exit 1", "exit 137", "killed"} {
		failed := failures[exit]
		for name, tt := range map[string]struct {
			steps   []map[string]any
			isError bool
			text    string
		}{
			"a result":                   {[]map[string]any{do("result", "text", "fine")}, false, "fine"},
			"a result about errors":      {[]map[string]any{do("result", "text", limits)}, false, limits},
			"a result of errors":         {[]map[string]any{do("result", "text", " it failed\n", "is_error", true)}, true, "it failed"},
			"a blank result of errors":   {[]map[string]any{do("result", "is_error", true)}, true, "claude returned is_error=true"},
			"a list":                     {[]map[string]any{do("stdout", "text", `[{"type":"result","result":"old"},{"type":"result","result":7},{"type":"x"}]`)}, false, "7"},
			"plain text":                 {[]map[string]any{do("stdout", "text", "plain \n")}, failed != "", or(failed, "plain")},
			"plain text about errors":    {[]map[string]any{do("stdout", "text", limits)}, failed != "", or(failed, limits)},
			"only stderr":                {[]map[string]any{do("stderr", "text", "note")}, failed != "", or(with(failed, "\nstderr:\nnote"), "note")},
			"another object":             {[]map[string]any{do("stdout", "text", `{"type":"x","result":"y"}`)}, failed != "", or(failed, `{"type":"x","result":"y"}`)},
			"nothing":                    {nil, true, or(failed, "claude returned empty output twice (exit 0)")},
			"blank":                      {[]map[string]any{do("stdout", "text", " \n")}, true, or(failed, "claude returned empty output twice (exit 0)")},
			"a blank result":             {[]map[string]any{do("result", "text", " ")}, true, or(failed, "claude returned empty output twice (exit 0)")},
			"a blank result with stderr": {[]map[string]any{do("result"), do("stderr", "text", "why")}, true, or(with(failed, "\nstderr:\nwhy"), "claude returned empty output twice (exit 0)")},
		} {
			t.Run(exit+", "+name, func(t *testing.T) {
				a := f.call("claude_code", map[string]any{"prompt": script(append(tt.steps, exits[exit])...)})
				assert.Equal(t, tt.isError, a.IsError, a.raw)
				if tt.isError && failed == "" && strings.Contains(tt.text, "twice") {
					assert.Contains(t, a.text(), tt.text)
				} else {
					assert.Equal(t, tt.text, a.text())
				}
				assert.Nil(t, a.Structured)
			})
		}
	}
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func with(a, b string) string {
	if a == "" {
		return ""
	}
	return a + b
}

func TestBlockingArguments(t *testing.T) {
	f := start(t, func(c *Config) { c.Timeout = 7 * time.Second })
	for name, tt := range map[string]struct {
		args any
		want string
	}{
		"no prompt":     {map[string]any{}, "Missing required argument: prompt"},
		"null":          {map[string]any{"prompt": nil}, "Missing required argument: prompt"},
		"blank":         {map[string]any{"prompt": " \n"}, "Missing required argument: prompt"},
		"a number":      {map[string]any{"prompt": 42}, "42"},
		"no time":       {map[string]any{"prompt": "x", "timeout_ms": 0}, "claude failed: timeout budget exhausted before retry"},
		"negative time": {map[string]any{"prompt": "x", "timeout_ms": -5}, "claude failed: timeout budget exhausted before retry"},
		"a fraction":    {map[string]any{"prompt": "x", "timeout_ms": 1.5}, "x"},
		"words":         {map[string]any{"prompt": "x", "timeout_ms": "1"}, "x"},
		"a long time":   {map[string]any{"prompt": "x", "timeout_ms": 1e300}, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, f.call("claude_code", tt.args).text())
		})
	}
	a := f.call("no_such_tool", map[string]any{})
	assert.Equal(t, "Unknown tool: no_such_tool", a.text())
	assert.True(t, a.IsError)
}

func TestBlankIsTriedOnceMore(t *testing.T) {
	f := start(t, nil)
	mark := filepath.Join(f.workspace, "first")
	a := f.call("claude_code", map[string]any{"prompt": script(f.record(), do("first-time", "path", mark), do("exit"), do("result", "text", "second"))})
	assert.Equal(t, "second", a.text())
	require.Len(t, f.recorded(), 2)
	assert.Contains(t, f.stderr.String(), "tools/call: empty output; retrying")

	// There is no second one when the time is over.
	a = f.call("claude_code", map[string]any{"prompt": script(do("pause", "ms", 300), do("exit")), "timeout_ms": 350})
	assert.True(t, a.IsError)
	assert.Regexp(t, `^claude failed: (killed by SIGKILL|timeout budget exhausted before retry)`, a.text())
}

// TestTimeoutLeavesNothing: a call whose time is over ends with everything that
// it started; the fixture looks for what is left.
func TestTimeoutLeavesNothing(t *testing.T) {
	f := start(t, nil)
	a := f.call("claude_code", map[string]any{"prompt": script(do("ignore-term"), do("linger"), do("stderr", "text", "busy"), do("stall")), "timeout_ms": 700})
	assert.True(t, a.IsError)
	assert.Regexp(t, `(?s)^claude failed: killed by SIGKILL\nIts time of 700 ms was over; its sandbox was destroyed.*\nstderr:\nbusy$`, a.text())
	assert.Empty(t, f.processes())
}

func TestResultThenNeverExits(t *testing.T) {
	f := start(t, nil)
	a := f.call("claude_code", map[string]any{"prompt": script(do("result", "text", "good"), do("stall")), "timeout_ms": 700})
	assert.Equal(t, "good", a.text(), "the result counts, not the exit")
	assert.False(t, a.IsError)
}

// TestCancelledCallIsDestroyed: it stays without an answer, and the next call
// works.
func TestCancelledCallIsDestroyed(t *testing.T) {
	f := start(t, nil)
	id := f.begin("claude_code", map[string]any{"prompt": script(do("ignore-term"), f.record(), do("linger"), do("stall"))})
	require.Eventually(t, func() bool { return len(f.recorded()) == 1 }, 10*time.Second, 5*time.Millisecond)
	_, err := fmt.Fprintf(f.in, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`+"\n", id)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(f.processes()) == 0 }, 10*time.Second, 5*time.Millisecond)
	assert.Equal(t, "next", f.call("claude_code", map[string]any{"prompt": "next"}).text())
	assert.NotContains(t, f.seen.String(), fmt.Sprintf(`"id":%d,`, id))
}

func TestOutputLimits(t *testing.T) {
	f := start(t, nil)
	for _, stream := range []string{"stdout", "stderr"} {
		a := f.call("claude_code", map[string]any{"prompt": script(do(stream+"-bytes", "repeat", 10<<20+1), do("stall"))})
		assert.True(t, a.IsError)
		assert.Equal(t, "claude "+stream+" maxBuffer exceeded", a.text())
	}
	for _, said := range []string{"a\xff\xfeb", "{\"type\":\"result\",\"result\":\"a\xff\xfeb\"}"} {
		a := f.call("claude_code", map[string]any{"prompt": script(raw(said))})
		assert.False(t, a.IsError)
		assert.Regexp(t, "^a\uFFFD+b$", a.text())
	}
}

// TestLongAnswerIsCut: on a code point, with the whole of it to be read as a job.
func TestLongAnswerIsCut(t *testing.T) {
	f := start(t, func(c *Config) { c.MaxChars = 1000 })
	for _, char := range []string{"a", "語", "🙂"} {
		a := f.call("claude_code", map[string]any{"prompt": script(do("result", "text", char, "repeat", 40000))})
		require.False(t, a.IsError)
		short, note, ok := strings.Cut(a.text(), "\n\n[mcp-agents: ")
		require.True(t, ok, "a note follows")
		assert.Equal(t, strings.Repeat(char, 1000), short)
		require.Contains(t, note, "40000 characters")
		_, id, _ := strings.Cut(note, "jobId ")
		id, _, _ = strings.Cut(id, " ")
		whole := short
		for offset := 1000; ; {
			page := f.call("claude-result", map[string]any{"jobId": id, "offset": offset})
			require.False(t, page.IsError, page.raw)
			whole += page.Structured["text"].(string)
			offset = int(page.Structured["nextOffset"].(float64))
			if page.Structured["done"].(bool) {
				break
			}
		}
		assert.Equal(t, strings.Repeat(char, 40000), whole, "every character once")
	}
	exact := f.call("claude_code", map[string]any{"prompt": script(do("result", "text", "b", "repeat", 1000))})
	assert.Equal(t, strings.Repeat("b", 1000), exact.text())
}

// TestMissingLogin: said before anything is started.
func TestMissingLogin(t *testing.T) {
	f := start(t, nil)
	t.Setenv("ANTHROPIC_API_KEY", "")
	home := os.Getenv("HOME")
	for name, prepare := range map[string]func(dir string){
		"no directory": func(string) {},
		"no file":      func(dir string) { require.NoError(t, os.MkdirAll(dir, 0o700)) },
		"no token": func(dir string) {
			require.NoError(t, os.MkdirAll(dir, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, ".credentials.json"), []byte(`{"claudeAiOauth":{}}`), 0o600))
		},
		"a directory in its place": func(dir string) {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, ".credentials.json"), 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.RemoveAll(home))
			prepare(filepath.Join(home, ".claude"))
			began := time.Now()
			a := f.call("claude_code", map[string]any{"prompt": script(f.record())})
			assert.True(t, a.IsError)
			assert.Contains(t, a.text(), "Claude Code login")
			a = f.call("claude-start", map[string]any{"prompt": script(f.record()), "cwd": f.workspace})
			assert.True(t, a.IsError)
			assert.Equal(t, "login_missing", a.Structured["code"])
			assert.Less(t, time.Since(began), time.Second)
			assert.Empty(t, f.recorded())
		})
	}
	// One that is there works, and reaches the sandbox as a file.
	require.NoError(t, os.RemoveAll(home))
	require.NoError(t, os.MkdirAll(filepath.Join(home, ".claude"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(home, ".claude", ".credentials.json"),
		[]byte(`{"claudeAiOauth":{"accessToken":"t","refreshToken":"r","expiresAt":4102444800000}}`), 0o600))
	assert.Equal(t, "hi", f.call("claude_code", map[string]any{"prompt": "hi"}).text())
}

func TestUnusableWorkspaceIsSaid(t *testing.T) {
	refused := fmt.Errorf("the startup directory is not shared: name it with --workspace")
	f := start(t, func(c *Config) { c.RootsErr = refused })
	assert.Equal(t, refused.Error(), f.call("claude_code", map[string]any{"prompt": "x"}).text())
	a := f.call("claude-start", map[string]any{"prompt": "x", "cwd": "/"})
	assert.Equal(t, "workspace_unusable", a.Structured["code"])
	assert.Equal(t, "pong", f.call("ping", map[string]any{}).text())
}

func TestAbsentProgram(t *testing.T) {
	f := start(t, nil)
	t.Setenv("PATH", "/nonexistent")
	a := f.call("claude_code", map[string]any{"prompt": "x"})
	assert.True(t, a.IsError)
	assert.Regexp(t, `^Failed to start claude: .*claude`, a.text())
}

// TestRotatedLoginIsWrittenBack: by a call that waits and by a review, also by
// one that is cancelled right after.
func TestRotatedLoginIsWrittenBack(t *testing.T) {
	f := start(t, nil)
	t.Setenv("ANTHROPIC_API_KEY", "")
	path := filepath.Join(os.Getenv("HOME"), ".claude", ".credentials.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	token := func(refresh string) string {
		return `{"claudeAiOauth":{"accessToken":"a","refreshToken":"` + refresh + `","expiresAt":4102444800000}}`
	}
	stored := func() string {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(b)
	}
	require.NoError(t, os.WriteFile(path, []byte(token("first")), 0o600))
	a := f.call("claude_code", map[string]any{"prompt": script(do("rotate", "text", token("second")), do("result", "text", "ok"))})
	require.Equal(t, "ok", a.text())
	assert.Equal(t, token("second"), stored())
	require.Equal(t, "completed", f.over(f.review(script(do("rotate", "text", token("third")), do("result", "text", "ok")))).state())
	assert.Equal(t, token("third"), stored())
	id := f.review(script(do("rotate", "text", token("fourth")), do("event", "type", "assistant"), do("ignore-term"), do("stall")))
	f.follow(id, func(a answer) bool { return a.state() == "running" })
	f.call("claude-cancel", map[string]any{"jobId": id})
	f.over(id)
	assert.Equal(t, token("fourth"), stored())
	// What is no login never replaces one.
	f.call("claude_code", map[string]any{"prompt": script(do("rotate", "text", `{"claudeAiOauth":{}}`), do("result", "text", "ok"))})
	assert.Equal(t, token("fourth"), stored())
	assert.NotContains(t, f.stderr.String(), "fourth")
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}
