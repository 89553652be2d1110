package codex

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/testkit/frontend"
)

// setting is where a front end runs.
type setting struct {
	runtime, image   string
	workspace, login string
	args, env        []string
}

func newSetting(t *testing.T, runtime, image string) *setting {
	t.Helper()
	s := &setting{runtime: runtime, image: image, workspace: t.TempDir(), login: t.TempDir()}
	require.NoError(t, os.WriteFile(filepath.Join(s.login, "auth.json"), []byte(`{"OPENAI_API_KEY":"k"}`), 0o600))
	if os.Getuid() == 0 && runtime == "docker" {
		require.NoError(t, os.Chown(s.workspace, 1000, 1000))
	}
	return s
}

// client is an MCP client that started a front end.
type client struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	stderr frontend.Buffer
	exited chan struct{}
	nextID int

	pausing atomic.Int64 // until then, in nanoseconds of the epoch, it does not read

	mu   sync.Mutex
	came *sync.Cond
	all  []reply
	end  bool
}

// reply is what a client gets.
type reply struct {
	ID     any    `json:"id"`
	Method string `json:"method"`
	Params struct {
		ProgressToken any    `json:"progressToken"`
		Progress      int    `json:"progress"`
		Message       string `json:"message"`
		Msg           struct {
			Type string `json:"type"`
		} `json:"msg"`
	} `json:"params"`
	Result *struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		StructuredContent map[string]any   `json:"structuredContent"`
		IsError           bool             `json:"isError"`
		Tools             []map[string]any `json:"tools"`
	} `json:"result"`
	Error *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

func (r reply) text() string {
	if r.Result == nil || len(r.Result.Content) == 0 {
		return ""
	}
	return r.Result.Content[0].Text
}

func (r reply) field(name string) any { return r.Result.StructuredContent[name] }

// start starts a front end and does the handshake.
func (s *setting) start(t *testing.T) *client {
	t.Helper()
	args := append([]string{"--provider", "codex", "--runtime", s.runtime, "--workspace", s.workspace}, s.args...)
	if s.image != "" {
		args = append(args, "--image", s.image)
	}
	cmd := exec.Command(built.agents, args...)
	cmd.Dir = s.workspace
	cmd.Env = append(os.Environ(), "CODEX_HOME="+s.login, "PATH="+filepath.Dir(built.fakeCodex)+":"+os.Getenv("PATH"))
	cmd.Env = append(cmd.Env, s.env...)
	c := &client{t: t, cmd: cmd, exited: make(chan struct{})}
	c.came = sync.NewCond(&c.mu)
	var err error
	c.in, err = cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = &c.stderr
	require.NoError(t, cmd.Start())
	go c.read(out)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-c.exited
		if t.Failed() {
			t.Log("front end said:\n" + c.stderr.String())
		}
	})
	r := c.answer(c.request("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "codexe2e", "version": "1"}}))
	require.Nil(t, r.Error)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

// read collects what the front end writes, and its end.
func (c *client) read(out io.Reader) {
	r := bufio.NewReaderSize(out, 1<<20)
	for {
		time.Sleep(time.Until(time.Unix(0, c.pausing.Load())))
		line, err := r.ReadBytes('\n')
		c.mu.Lock()
		if len(line) > 0 {
			var m reply
			if json.Unmarshal(line, &m) != nil {
				m.Method = "NOT JSON: " + string(line)
			}
			c.all = append(c.all, m)
		}
		c.end = err != nil
		c.came.Broadcast()
		c.mu.Unlock()
		if err != nil {
			break
		}
	}
	_ = c.cmd.Wait()
	close(c.exited)
}

func (c *client) send(line string) {
	c.t.Helper()
	_, err := io.WriteString(c.in, line+"\n")
	require.NoError(c.t, err)
}

func (c *client) request(method string, params any) int {
	c.t.Helper()
	c.nextID++
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.nextID, "method": method, "params": params})
	require.NoError(c.t, err)
	c.send(string(b))
	return c.nextID
}

// within waits until match accepts something that came.
func (c *client) within(limit time.Duration, match func(reply) bool) reply {
	c.t.Helper()
	timer := time.AfterFunc(limit, func() { c.mu.Lock(); defer c.mu.Unlock(); c.came.Broadcast() })
	defer timer.Stop()
	deadline := time.Now().Add(limit)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := 0; ; {
		for ; i < len(c.all); i++ {
			if match(c.all[i]) {
				return c.all[i]
			}
		}
		if c.end || !time.Now().Before(deadline) {
			require.FailNow(c.t, "nothing matched within "+limit.String())
		}
		c.came.Wait()
	}
}

func (c *client) answer(id int) reply {
	c.t.Helper()
	return c.within(60*time.Second, func(r reply) bool { return r.ID == float64(id) && r.Method == "" })
}

// answers is how many answers an id has got.
func (c *client) answers(id int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, r := range c.all {
		if r.ID == float64(id) && r.Method == "" {
			n++
		}
	}
	return n
}

// event waits for an event of Codex of the type.
func (c *client) event(kind string) {
	c.t.Helper()
	c.within(60*time.Second, func(r reply) bool { return r.Method == "codex/event" && r.Params.Msg.Type == kind })
}

// call calls a tool.
func (c *client) call(tool string, arguments map[string]any) int {
	c.t.Helper()
	return c.request("tools/call", map[string]any{"name": tool, "arguments": arguments})
}

// turn calls codex, with the request's id as progress token.
func (c *client) turn(prompt string, more map[string]any) int {
	c.t.Helper()
	return c.request("tools/call", map[string]any{"name": "codex", "_meta": map[string]any{"progressToken": c.nextID + 1},
		"arguments": c.arguments(prompt, more)})
}

func (c *client) arguments(prompt string, more map[string]any) map[string]any {
	arguments := map[string]any{"prompt": prompt, "cwd": c.cmd.Dir, "sandbox": "workspace-write"}
	for k, v := range more {
		arguments[k] = v
	}
	return arguments
}

// ask calls a tool of ours and waits for its answer.
func (c *client) ask(tool string, arguments map[string]any) reply {
	c.t.Helper()
	r := c.answer(c.call(tool, arguments))
	require.Nil(c.t, r.Error)
	return r
}

func (c *client) cancel(id int) {
	c.t.Helper()
	b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": map[string]any{"requestId": id}})
	c.send(string(b))
}

// told are the progress messages of a request.
func (c *client) told(id int) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, r := range c.all {
		if r.Method == "notifications/progress" && r.Params.ProgressToken == float64(id) {
			all = append(all, r.Params.Message)
		}
	}
	return all
}

// says waits until the front end has logged text.
func (c *client) says(text string) {
	c.t.Helper()
	require.Eventually(c.t, func() bool { return strings.Contains(c.stderr.String(), text) }, 30*time.Second, 20*time.Millisecond, "stderr holds %q", text)
}

// job starts a job and waits for its end.
func (c *client) job(prompt string, limit time.Duration) (id string, status reply) {
	c.t.Helper()
	id, _ = c.ask("codex-start", c.arguments(prompt, nil)).field("jobId").(string)
	require.NotEmpty(c.t, id)
	deadline := time.Now().Add(limit)
	for cursor := any(0.0); time.Now().Before(deadline); cursor = status.field("cursor") {
		status = c.ask("codex-status", map[string]any{"jobId": id, "cursor": cursor, "wait_ms": 5000})
		switch status.field("state") {
		case "completed", "failed", "canceled":
			return id, status
		}
	}
	require.FailNow(c.t, "the job did not end")
	return "", reply{}
}

// result reads a job's whole result and how many pages it took.
func (c *client) result(id string) (text string, pages int) {
	c.t.Helper()
	for offset := any(0.0); ; pages++ {
		r := c.ask("codex-result", map[string]any{"jobId": id, "offset": offset})
		require.False(c.t, r.Result.IsError, r.text())
		page, _ := r.field("text").(string)
		require.LessOrEqual(c.t, len([]rune(page)), 32768)
		text += page
		if offset = r.field("nextOffset"); r.field("done") == true {
			return text, pages + 1
		}
	}
}

// pause stops reading for a while, from the next message on.
func (c *client) pause(d time.Duration) { c.pausing.Store(time.Now().Add(d).UnixNano()) }

// leave closes the input and returns the exit status.
func (c *client) leave(limit time.Duration) int {
	c.t.Helper()
	require.NoError(c.t, c.in.Close())
	select {
	case <-c.exited:
	case <-time.After(limit):
		require.FailNow(c.t, "the front end still runs after "+limit.String())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.all {
		require.NotContains(c.t, r.Method, "NOT JSON")
	}
	return c.cmd.ProcessState.ExitCode()
}
