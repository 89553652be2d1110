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
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/testkit/frontend"
	"mcpagents/internal/testkit/wait"
)

// setting is where a front end runs.
type setting struct {
	runtime   string
	image     string // docker only
	workspace string
	login     string // CODEX_HOME of the user
	secret    string // the key in it
	run       string // marks every process of this front end's sandboxes
	args      []string
	env       []string
	as        *syscall.SysProcAttr // of the front end
	engine    string               // its address; empty: the one that the docker command uses
	lookAt    string               // ... and that of the engine to look at for what is left

	slowestLook time.Duration
}

// newSetting makes a workspace of a user that is not root, and a login.
func newSetting(t *testing.T, runtime, image string) *setting {
	t.Helper()
	s := &setting{runtime: runtime, image: image, workspace: t.TempDir(), login: t.TempDir()}
	s.run = filepath.Base(filepath.Dir(s.workspace)) + fmt.Sprint(time.Now().UnixNano())
	s.secret = "secret-" + s.run
	auth := filepath.Join(s.login, "auth.json")
	require.NoError(t, os.WriteFile(auth, []byte(`{"OPENAI_API_KEY":"`+s.secret+`"}`), 0o600))
	if os.Getuid() == 0 && runtime == "docker" {
		require.NoError(t, os.Chown(s.workspace, 1000, 1000))
	}
	return s
}

// client is an MCP client that started a front end.
type client struct {
	t      *testing.T
	cmd    *exec.Cmd
	s      *setting
	in     io.WriteCloser
	out    *os.File
	lines  chan []byte // of stdout; closed at its end
	stderr lockedBuffer
	exited chan struct{}
	nextID int

	answers map[float64]reply // so far
	since   time.Time         // when the fault began

	// stop, if not empty, is the method after which nothing more is read until resume is closed.
	stop   atomic.Value
	resume chan struct{}
}

// lockedBuffer is what a program writes while a test reads it.
type lockedBuffer = frontend.Buffer

// start starts a front end in the setting.
func (s *setting) start(t *testing.T) *client {
	t.Helper()
	return s.startCommand(t, s.command())
}

// command is the front end in the setting.
func (s *setting) command() *exec.Cmd {
	args := append([]string{"--provider", "codex", "--runtime", s.runtime, "--workspace", s.workspace, "--env", "ACCEPTANCE_RUN"}, s.args...)
	if s.image != "" {
		args = append(args, "--image", s.image)
	}
	if s.engine != "" {
		args = append(args, "--docker_host", s.engine)
	}
	cmd := exec.Command(built.agents, args...)
	cmd.Dir = s.workspace
	cmd.Env = append(os.Environ(), "CODEX_HOME="+s.login, "ACCEPTANCE_RUN="+s.run,
		"PATH="+filepath.Dir(built.fakeCodex)+":"+os.Getenv("PATH"))
	cmd.Env = append(cmd.Env, s.env...)
	cmd.SysProcAttr = s.as
	return cmd
}

// startCommand starts a command that is the front end, or starts it.
func (s *setting) startCommand(t *testing.T, cmd *exec.Cmd) *client {
	t.Helper()
	c := &client{t: t, cmd: cmd, s: s, lines: make(chan []byte, 1024), exited: make(chan struct{}), answers: map[float64]reply{},
		resume: make(chan struct{})}
	var err error
	c.in, err = cmd.StdinPipe()
	require.NoError(t, err)
	out, childOut, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = childOut, &c.stderr
	c.out = out
	require.NoError(t, cmd.Start())
	_ = childOut.Close()
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(c.lines)
		r := bufio.NewReaderSize(out, 1<<20)
		for {
			line, err := r.ReadBytes('\n')
			if len(line) > 0 {
				c.lines <- line
			}
			if stop, _ := c.stop.Load().(string); stop != "" && bytes.Contains(line, []byte(stop)) {
				<-c.resume
			}
			if err != nil {
				return
			}
		}
	})
	go func() { defer close(c.exited); _ = cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-c.exited
		_ = out.Close()
		c.readOn()
		go func() {
			for range c.lines { //nolint:revive // let the reader end
			}
		}()
		reading.Wait()
		if t.Failed() {
			t.Log("front end said:\n" + c.stderr.String())
		}
	})
	return c
}

// pauseAfter makes the client stop reading after the next message with a method.
func (c *client) pauseAfter(method string) { c.stop.Store(method) }

// readOn ends the pause.
func (c *client) readOn() {
	if c.stop.Swap("") != nil {
		select {
		case <-c.resume:
		default:
			close(c.resume)
		}
	}
}

// begin is when the time to clean begins; a fault may call it again.
func (c *client) begin() { c.since = time.Now() }

// note keeps an answer.
func (c *client) note(line []byte) (reply, error) {
	var r reply
	err := json.Unmarshal(line, &r)
	if id, ok := r.ID.(float64); err == nil && ok && r.Method == "" {
		c.answers[id] = r
	}
	return r, err
}

// send writes one message.
func (c *client) send(message string) {
	c.t.Helper()
	_, err := io.WriteString(c.in, message+"\n")
	require.NoError(c.t, err)
}

// request sends a request and returns its id.
func (c *client) request(method string, params any) int {
	c.t.Helper()
	c.nextID++
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.nextID, "method": method, "params": params})
	require.NoError(c.t, err)
	c.send(string(b))
	return c.nextID
}

// reply is an answer, or a notification.
type reply struct {
	ID     any             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// until reads messages until match accepts one.
func (c *client) until(match func(reply) bool) reply {
	c.t.Helper()
	timer := time.NewTimer(wait.Limit)
	defer timer.Stop()
	for {
		select {
		case line, ok := <-c.lines:
			require.True(c.t, ok, "stdout ended")
			r, err := c.note(line)
			require.NoError(c.t, err, "stdout holds only JSON-RPC: %q", line)
			if match(r) {
				return r
			}
		case <-timer.C:
			require.FailNow(c.t, "nothing matched within "+wait.Limit.String())
		}
	}
}

// answer waits for the answer of a request.
func (c *client) answer(id int) reply {
	c.t.Helper()
	return c.until(func(r reply) bool { return r.ID == float64(id) && r.Method == "" })
}

// initialize does the handshake.
func (c *client) initialize() {
	c.t.Helper()
	r := c.answer(c.request("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "acceptance", "version": "1"}}))
	require.Nil(c.t, r.Error)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// codex starts a codex call.
func (c *client) codex(prompt string, more map[string]any) int {
	c.t.Helper()
	args := map[string]any{"prompt": prompt, "cwd": c.cmd.Dir, "sandbox": "workspace-write"}
	for k, v := range more {
		args[k] = v
	}
	return c.request("tools/call", map[string]any{"name": "codex", "arguments": args})
}

// text is the first text of a tool result.
func (r reply) text() string {
	var result struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	_ = json.Unmarshal(r.Result, &result)
	if len(result.Content) == 0 {
		return ""
	}
	return result.Content[0].Text
}

// exit waits for the front end's end and returns its status.
func (c *client) exit() int {
	c.t.Helper()
	wait.Recv(c.t, c.exited, "the front end still runs")
	status, _ := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
