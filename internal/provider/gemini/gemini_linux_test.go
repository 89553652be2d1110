package gemini

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"mcpagents/internal/mcp/toolserver"
	"mcpagents/internal/provider/oneshot"
	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/local"
	"mcpagents/internal/testkit/frontend"
)

// fakeDir holds a program that plays agy, and sandbox-init.
var fakeDir string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, remove, err := frontend.Programs("mcp-agents-fakeagy-", map[string]string{
		"agy": "mcpagents/internal/testkit/fakeclaude", "sandbox-init": "mcpagents/cmd/sandbox-init"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer remove()
	fakeDir = dir
	status := m.Run()
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

type fixture struct {
	t    *testing.T
	dir  string
	tool toolserver.Tool
}

func start(t *testing.T, change func(*Config)) *fixture {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("PATH", fakeDir+":"+os.Getenv("PATH"))
	t.Setenv("HOME", filepath.Join(dir, "home"))
	t.Setenv("TMPDIR", dir)
	for _, name := range KeyVariables {
		t.Setenv(name, "")
	}
	rt, err := local.New(filepath.Join(fakeDir, "sandbox-init"))
	require.NoError(t, err)
	log := slog.New(slog.DiscardHandler)
	cfg := Config{Log: log, Launcher: &oneshot.Launcher{Runtime: rt, Log: log, Spec: sandbox.Spec{Provider: "gemini", Instance: "test",
		HomeRoot: filepath.Join(dir, "homes"), HomePrefix: "mcp-agents-gemini-", Grace: 200 * time.Millisecond}}}
	if change != nil {
		change(&cfg)
	}
	tools := New(cfg).Tools()
	require.Len(t, tools, 2)
	require.Equal(t, "ping", tools[0].Name)
	require.Equal(t, "gemini", tools[1].Name)
	return &fixture{t, dir, tools[1]}
}

func (f *fixture) call(args any) toolserver.Result {
	f.t.Helper()
	b, err := json.Marshal(args)
	require.NoError(f.t, err)
	r, err := f.tool.Call(f.t.Context(), toolserver.Call{Arguments: b})
	require.NoError(f.t, err)
	left, err := filepath.Glob(filepath.Join(f.dir, "mcp-agents-gemini-*"))
	require.NoError(f.t, err)
	require.Empty(f.t, left, "the directory that the call worked in is gone")
	return r
}

func script(steps ...map[string]any) string {
	b, _ := json.Marshal(steps)
	return string(b)
}

func TestCall(t *testing.T) {
	f := start(t, nil)
	t.Setenv("GEMINI_API_KEY", "key")
	records := filepath.Join(f.dir, "records")
	prompt := script(map[string]any{"do": "record", "path": records}, map[string]any{"do": "result", "text": "the answer"})
	assert.Equal(t, toolserver.Result{Text: "the answer"}, f.call(map[string]any{"prompt": prompt, "model": "x"}))
	b, err := os.ReadFile(records)
	require.NoError(t, err)
	var run struct {
		Argv, Env  []string
		Dir, Stdin string
	}
	require.NoError(t, json.Unmarshal(b, &run))
	assert.Equal(t, []string{"--sandbox", "-p", prompt}, run.Argv)
	assert.Contains(t, run.Dir, "/mcp-agents-gemini-")
	assert.NoDirExists(t, run.Dir)
	assert.Empty(t, run.Stdin, "and it was at its end, or the fake would still wait")
	assert.Contains(t, run.Env, "NO_COLOR=1")
	assert.Contains(t, run.Env, "GEMINI_API_KEY=key")
}

func do(what string, more ...any) map[string]any {
	step := map[string]any{"do": what}
	for i := 0; i+1 < len(more); i += 2 {
		step[more[i].(string)] = more[i+1]
	}
	return step
}

// TestFailureShapes: how agy ended decides, then whether it said anything: it
// may exit 0 without a word. What its words are about never counts.
func TestFailureShapes(t *testing.T) {
	f := start(t, nil)
	const limits = "rate limit: error 429, please log in"
	const empty = "agy returned empty output (exit 0): it printed no answer, as it does when it is not logged in or wants a terminal"
	for _, exit := range []struct {
		name   string
		step   map[string]any
		failed string // empty: it ended well
	}{
		{"exit 0", do("exit"), ""},
		{"exit 1", do("exit", "code", 1), "agy failed: exit code 1"},
		{"exit 137", do("exit", "code", 137), "agy failed: exit code 137"},
		{"killed", do("signal", "code", 9), "agy failed: killed by SIGKILL"},
	} {
		for name, tt := range map[string]struct {
			steps  []map[string]any
			answer string // after exit 0; empty: an error
			stderr string // beside another end
		}{
			"an answer":               {[]map[string]any{do("stdout", "text", "fine \n")}, "fine", ""},
			"an answer about errors":  {[]map[string]any{do("stdout", "text", limits)}, limits, ""},
			"an answer and noise":     {[]map[string]any{do("stderr", "text", limits), do("stdout", "text", "fine")}, "fine", limits},
			"JSON is not looked into": {[]map[string]any{do("stdout", "text", `{"type":"result","is_error":true,"result":"x"}`)}, `{"type":"result","is_error":true,"result":"x"}`, ""},
			"only stderr":             {[]map[string]any{do("stderr", "text", limits)}, limits, limits},
			"nothing":                 {nil, "", ""},
			"blank":                   {[]map[string]any{do("stdout", "text", " \n")}, "", ""},
			"blank and stderr":        {[]map[string]any{do("stdout", "text", "\n"), do("stderr", "text", "why")}, "", "why"},
		} {
			t.Run(exit.name+", "+name, func(t *testing.T) {
				want := toolserver.Result{Text: tt.answer}
				switch {
				case exit.failed != "":
					want = toolserver.Result{IsError: true, Text: exit.failed}
					if tt.stderr != "" {
						want.Text += "\nstderr:\n" + tt.stderr
					}
				case tt.answer == "":
					want = toolserver.Result{IsError: true, Text: empty}
				}
				assert.Equal(t, want, f.call(map[string]any{"prompt": script(append(tt.steps, exit.step)...)}))
			})
		}
	}
}

// TestNeverEnds: what agy does until it is ended.
func TestNeverEnds(t *testing.T) {
	f := start(t, nil)
	for name, tt := range map[string]struct {
		steps []map[string]any
		text  string // the beginning
	}{
		"too much":                  {[]map[string]any{do("stdout-bytes", "repeat", 10<<20+1), do("stall")}, "agy stdout maxBuffer exceeded"},
		"too much on stderr":        {[]map[string]any{do("stderr-bytes", "repeat", 10<<20+1), do("stall")}, "agy stderr maxBuffer exceeded"},
		"silence":                   {[]map[string]any{do("stall")}, "agy failed: killed by SIGKILL\nIts time of 1500 ms was over; its sandbox was destroyed and nothing of it runs any more. It had printed nothing."},
		"a login that nobody gives": {[]map[string]any{do("stdout", "text", "visit https://…"), do("ignore-term"), do("linger"), do("stall")}, "agy failed: killed by SIGKILL"},
	} {
		t.Run(name, func(t *testing.T) {
			r := f.call(map[string]any{"prompt": script(tt.steps...), "timeout_ms": 1500})
			assert.True(t, r.IsError)
			assert.True(t, strings.HasPrefix(r.Text, tt.text), r.Text)
			assert.Nil(t, r.Structured)
		})
	}
}

// TestAskedLogin: nobody would ever log in, so the call ends long before its time.
func TestAskedLogin(t *testing.T) {
	f := start(t, func(c *Config) { c.LoginPatience = 100 * time.Millisecond })
	for _, stream := range []string{"stdout", "stderr"} {
		r := f.call(map[string]any{"prompt": script(
			map[string]any{"do": stream, "text": "Open https://accounts.example.com/o/oauth2/auth?client_id=1\nWaiting for the code: "},
			map[string]any{"do": "ignore-term"}, map[string]any{"do": "linger"}, map[string]any{"do": "stall"})})
		assert.True(t, r.IsError)
		assert.True(t, strings.HasPrefix(r.Text, "agy failed: it asks for a login, which nobody can give here: log in with it on this machine"), r.Text)
	}
}

func TestArguments(t *testing.T) {
	f := start(t, func(c *Config) { c.MaxChars = 10 })
	assert.Contains(t, string(f.tool.InputSchema), "300000ms")
	assert.Equal(t, "Missing required argument: prompt", f.call(map[string]any{"prompt": " "}).Text)
	assert.Equal(t, "agy failed: timeout budget exhausted before retry", f.call(map[string]any{"prompt": "x", "timeout_ms": 0}).Text)
	assert.True(t, f.call(map[string]any{"prompt": strings.Repeat("x", 128<<10)}).IsError)
	r := f.call(map[string]any{"prompt": script(map[string]any{"do": "result", "text": "語", "repeat": 20})})
	assert.False(t, r.IsError)
	assert.True(t, strings.HasPrefix(r.Text, strings.Repeat("語", 10)+"\n\n[mcp-agents: this answer has 20 characters"), r.Text)
}

func TestNoDirectory(t *testing.T) {
	f := start(t, nil)
	t.Setenv("TMPDIR", filepath.Join(f.dir, "none"))
	r := f.call(map[string]any{"prompt": "x"})
	assert.True(t, r.IsError)
	assert.True(t, strings.HasPrefix(r.Text, "Failed to prepare isolated working directory: "), r.Text)
}

func TestCancelled(t *testing.T) {
	f := start(t, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	var wait sync.WaitGroup
	mark := filepath.Join(f.dir, "mark")
	wait.Go(func() {
		args, _ := json.Marshal(map[string]any{"prompt": script(map[string]any{"do": "first-time", "path": mark}, map[string]any{"do": "linger"}, map[string]any{"do": "stall"})})
		_, err := f.tool.Call(ctx, toolserver.Call{Arguments: args})
		assert.ErrorIs(t, err, toolserver.ErrCancelled)
	})
	require.Eventually(t, func() bool { _, err := os.Stat(mark); return err == nil }, 10*time.Second, 5*time.Millisecond)
	cancel(toolserver.ErrCancelled)
	wait.Wait()
}

// TestMissingLogin: said before anything is started.
func TestMissingLogin(t *testing.T) {
	f := start(t, func(c *Config) { c.NeedLogin = true; c.Env = []string{"MY_KEY"} })
	token := filepath.Join(os.Getenv("HOME"), ".gemini", "antigravity-cli", "antigravity-oauth-token")
	require.NoError(t, os.MkdirAll(filepath.Dir(token), 0o700))
	for name, content := range map[string]string{"does not exist": "", "is empty": " \n", "holds no token": "a\x00b"} {
		_ = os.Remove(token)
		if content != "" {
			require.NoError(t, os.WriteFile(token, []byte(content), 0o600))
		}
		began := time.Now()
		r := f.call(map[string]any{"prompt": "x"})
		assert.True(t, r.IsError)
		assert.Contains(t, r.Text, "agy login is missing")
		assert.Contains(t, r.Text, name)
		assert.Less(t, time.Since(began), time.Second)
	}
	_ = os.Remove(token)
	t.Setenv("MY_KEY", "k")
	assert.Equal(t, "hi", f.call(map[string]any{"prompt": "hi"}).Text, "a variable that the operator names may be a login")
	t.Setenv("MY_KEY", "")
	t.Setenv("ANTIGRAVITY_API_KEY", "k")
	assert.Equal(t, "hi", f.call(map[string]any{"prompt": "hi"}).Text)
}
