package claude

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"mcpagents/internal/credentials"
	"mcpagents/internal/mcp/toolserver"
	"mcpagents/internal/provider/oneshot"
	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/local"
	"mcpagents/internal/testkit/frontend"
	"mcpagents/internal/workspace"
)

// fakeDir holds a program that plays Claude Code, and sandbox-init.
var fakeDir string

func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, remove, err := frontend.Programs("mcp-agents-fakeclaude-", map[string]string{
		"claude": "mcpagents/internal/testkit/fakeclaude", "sandbox-init": "mcpagents/cmd/sandbox-init"})
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

// fixture is a provider with its server, over local sandboxes and the fake.
type fixture struct {
	*Provider
	t         *testing.T
	workspace string
	homes     string // of the sandboxes
	records   string // of the runs, see record
	stderr    frontend.Buffer

	in    *io.PipeWriter
	lines chan []byte
	nexts int
	seen  bytes.Buffer // everything that the server wrote
	done  chan error
}

// start serves a provider; change may change its configuration.
func start(t *testing.T, change func(*Config)) *fixture {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	t.Setenv("PATH", fakeDir+":"+os.Getenv("PATH"))
	t.Setenv("HOME", filepath.Join(dir, "home"))
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	t.Setenv("ANTHROPIC_API_KEY", "key-of-the-test")
	f := &fixture{t: t, workspace: filepath.Join(dir, "ws"), homes: filepath.Join(dir, "homes"), records: filepath.Join(dir, "records"),
		lines: make(chan []byte, 1024), done: make(chan error, 1)}
	require.NoError(t, os.Mkdir(f.workspace, 0o755))
	roots, err := workspace.Resolve([]string{f.workspace}, f.workspace, "", nil)
	require.NoError(t, err)
	rt, err := local.New(filepath.Join(fakeDir, "sandbox-init"))
	require.NoError(t, err)
	log := slog.New(slog.NewTextHandler(&f.stderr, nil))
	cfg := Config{
		Launcher: &oneshot.Launcher{Runtime: rt, Log: log, Spec: sandbox.Spec{Provider: "claude", Instance: "test", FilesDir: ".claude",
			HomeRoot: f.homes, HomePrefix: "mcp-agents-claude-", Grace: 200 * time.Millisecond}},
		Roots: roots, Model: "claude-opus-4-8", Effort: "xhigh", Login: credentials.Claude(""),
		TermAfter: 300 * time.Millisecond, KillAfter: 300 * time.Millisecond, Log: log,
	}
	if change != nil {
		change(&cfg)
	}
	f.Provider = New(cfg)
	f.serve(log)
	return f
}

func (f *fixture) serve(log *slog.Logger) {
	server, err := toolserver.New(toolserver.Config{Provider: "claude", Name: "mcp-agents", Version: "1.2.3", Tools: f.Tools(), Log: log})
	require.NoError(f.t, err)
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	f.in = toServer
	go func() {
		err := server.Serve(context.Background(), in, out)
		_ = out.Close()
		f.done <- err
	}()
	go func() {
		defer close(f.lines)
		r := bufio.NewReader(fromServer)
		for {
			line, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			f.lines <- line
		}
	}()
	f.t.Cleanup(f.stop)
}

// stop ends the server as a client that leaves does, and looks for what is left.
func (f *fixture) stop() {
	_ = f.in.Close()
	for range f.lines { //nolint:revive // to the end
	}
	require.NoError(f.t, <-f.done)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	f.Close(ctx)
	left, err := os.ReadDir(f.homes)
	if !os.IsNotExist(err) {
		require.NoError(f.t, err)
	}
	require.Empty(f.t, left, "private homes are gone")
	require.Empty(f.t, f.processes(), "no process is left")
	if f.t.Failed() {
		f.t.Log(f.stderr.String())
	}
}

// processes are those that work in the workspace, or whose command line names it.
func (f *fixture) processes() (found []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		cwd, _ := os.Readlink(dir + "/cwd")
		line, _ := os.ReadFile(dir + "/cmdline")
		if filepath.Base(dir) != fmt.Sprint(os.Getpid()) && (strings.HasPrefix(cwd, f.workspace) || bytes.Contains(line, []byte(f.workspace))) {
			found = append(found, filepath.Base(dir)+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
		}
	}
	return found
}

// reply is a message of the server.
type reply struct {
	ID     any             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// answer is a tool result.
type answer struct {
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	Structured map[string]any `json:"structuredContent"`
	IsError    bool           `json:"isError"`
	raw        string
}

func (a answer) text() string { return a.Content[0].Text }

func (a answer) job() string { id, _ := a.Structured["jobId"].(string); return id }

func (a answer) state() string { s, _ := a.Structured["state"].(string); return s }

func (a answer) cursor() int { n, _ := a.Structured["cursor"].(float64); return int(n) }

// send sends a request and returns its id.
func (f *fixture) send(method string, params any) int {
	f.t.Helper()
	f.nexts++
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": f.nexts, "method": method, "params": params})
	require.NoError(f.t, err)
	_, err = f.in.Write(append(b, '\n'))
	require.NoError(f.t, err)
	return f.nexts
}

// next returns the next message.
func (f *fixture) next() reply {
	f.t.Helper()
	select {
	case line, ok := <-f.lines:
		require.True(f.t, ok, "the server is gone")
		f.seen.Write(line)
		var r reply
		require.NoError(f.t, json.Unmarshal(line, &r))
		return r
	case <-time.After(20 * time.Second):
		require.FailNow(f.t, "no answer")
		return reply{}
	}
}

// wait waits for the answer of a request.
func (f *fixture) wait(id int) reply {
	f.t.Helper()
	for {
		if r := f.next(); r.ID == float64(id) {
			return r
		}
	}
}

// call calls a tool and waits for its result.
func (f *fixture) call(name string, args any) answer {
	f.t.Helper()
	return f.result(f.wait(f.begin(name, args)))
}

func (f *fixture) begin(name string, args any) int {
	f.t.Helper()
	return f.send("tools/call", map[string]any{"name": name, "arguments": args})
}

func (f *fixture) result(r reply) answer {
	f.t.Helper()
	require.Empty(f.t, r.Error, string(r.Error))
	a := answer{raw: string(r.Result)}
	require.NoError(f.t, json.Unmarshal(r.Result, &a))
	require.Len(f.t, a.Content, 1)
	return a
}

// review starts a review and returns its job.
func (f *fixture) review(prompt string) string {
	f.t.Helper()
	a := f.call("claude-start", map[string]any{"prompt": prompt, "cwd": f.workspace})
	require.False(f.t, a.IsError, a.raw)
	return a.job()
}

// follow polls a job until until accepts its status.
func (f *fixture) follow(job string, until func(answer) bool) answer {
	f.t.Helper()
	for cursor := 0; ; {
		a := f.call("claude-status", map[string]any{"jobId": job, "cursor": cursor, "wait_ms": 15000})
		require.False(f.t, a.IsError, a.raw)
		require.GreaterOrEqual(f.t, a.cursor(), cursor, "cursors never fall")
		cursor = a.cursor()
		if until(a) {
			return a
		}
	}
}

// over follows a job to its end.
func (f *fixture) over(job string) answer {
	f.t.Helper()
	return f.follow(job, func(a answer) bool {
		return a.state() == "completed" || a.state() == "failed" || a.state() == "canceled"
	})
}

// script is a prompt that the fake plays.
func script(steps ...map[string]any) string {
	b, _ := json.Marshal(steps)
	return string(b)
}

func do(what string, more ...any) map[string]any {
	step := map[string]any{"do": what}
	for i := 0; i+1 < len(more); i += 2 {
		step[more[i].(string)] = more[i+1]
	}
	return step
}

// raw are bytes of stdout that no JSON string of a script holds.
func raw(bytes string) map[string]any {
	return do("stdout-hex", "text", hex.EncodeToString([]byte(bytes)))
}

func (f *fixture) record() map[string]any { return do("record", "path", f.records) }

// run is one run of the fake as it recorded itself.
type recorded struct {
	Argv  []string `json:"argv"`
	Dir   string   `json:"dir"`
	Env   []string `json:"env"`
	Stdin string   `json:"stdin"`
	PID   int      `json:"pid"`
}

func (f *fixture) recorded() (runs []recorded) {
	f.t.Helper()
	b, err := os.ReadFile(f.records)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(f.t, err)
	for line := range bytes.Lines(b) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it is being written
		}
		var r recorded
		require.NoError(f.t, json.Unmarshal(line, &r))
		runs = append(runs, r)
	}
	return runs
}
