package codex

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/testkit/frontend"
	"mcpagents/internal/testkit/scenario"
)

const (
	// patience bounds everything that a stage waits for.
	patience = 60 * time.Second
	// moment is how long a stage waits where nothing can tell that all is done:
	// behind half a line, and while the client or Codex does not read.
	moment = 60 * time.Millisecond
)

const loginBefore = `{"tokens":{"access_token":"a1","refresh_token":"r1","id_token":"i","account_id":"acc"}}`

// boxed is a stage: the built program between a client and the fake Codex, which
// does as it is told over a socket in the workspace.
type boxed struct {
	testing.TB
	workspace, auth string
	stretch         int
	cmd             *exec.Cmd
	in              io.WriteCloser
	stderr          frontend.Buffer
	listener        net.Listener
	control         net.Conn

	deaf, gone bool // Codex reads no more; the client has ended
	mid        bool // Codex has written a part of a line
	sent       int  // steps
	settled    int  // marks
	late       time.Duration

	mu     sync.Mutex
	change *sync.Cond
	out    []byte // that nobody has taken
	got    []byte // by Codex
	done   int    // steps
	paused bool
	ended  bool // the output
	dead   bool // Codex
	exited chan struct{}
}

// newBoxed starts a front end for a scenario and does the handshake.
func newBoxed(t testing.TB, runtime, image string, s scenario.Settings) *boxed {
	t.Helper()
	workspace, err := os.MkdirTemp("", "cx") // t.TempDir is too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(workspace) })
	b := &boxed{TB: t, workspace: workspace, auth: filepath.Join(t.TempDir(), "auth.json"), stretch: cmp.Or(s.Stretch, 10), exited: make(chan struct{})}
	b.change = sync.NewCond(&b.mu)
	require.NoError(t, os.WriteFile(b.auth, []byte(loginBefore), 0o600))
	socket := filepath.Join(workspace, "c")
	b.listener, err = net.Listen("unix", socket)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(socket, 0o777))
	if os.Getuid() == 0 && runtime == "docker" {
		require.NoError(t, os.Chown(workspace, 1000, 1000))
	}
	b.start(runtime, image, s, socket)
	b.Send(scenario.InitializeLine + "\n")
	b.Settle()
	b.late = 0 // the start is no time of a scenario
	require.Contains(t, b.Take(), `"id":1,"result":{"protocolVersion"`)
	return b
}

// options are the flags and variables for a scenario's settings.
func (b *boxed) options(s scenario.Settings) (args, env []string) {
	ms := func(name string, d time.Duration) {
		env = append(env, fmt.Sprintf("MCP_AGENTS_CODEX_%s_MS=%d", name, (d*time.Duration(b.stretch)).Milliseconds()))
	}
	seconds := func(flag string, d time.Duration) {
		args = append(args, flag, fmt.Sprint((d * time.Duration(b.stretch)).Seconds()))
	}
	if t := s.Times; t != (scenario.Times{}) {
		seconds("--codex_idle_timeout", t.Idle)
		if t.Hard != 0 {
			seconds("--timeout", t.Hard)
		}
		ms("CANCEL_GRACE", t.CancelGrace)
		ms("TERMINAL_GRACE", t.TerminalGrace)
		ms("FLUSH_STALL", t.FlushStall)
		ms("STATUS_INTERVAL", t.StatusInterval)
		ms("PROGRESS_INTERVAL", t.ProgressInterval)
		ms("WAIT_INTERVAL", t.WaitInterval)
	}
	if s.Gone != 0 {
		ms("CLIENT_GONE_GRACE", s.Gone)
	}
	if s.Goal != "" {
		args = append(args, "--goal", s.Goal)
	}
	if s.Version != "" {
		env = append(env, "FAKECODEX_VERSION="+s.Version)
	}
	return args, env
}

func (b *boxed) start(runtime, image string, s scenario.Settings, socket string) {
	b.Helper()
	more, env := b.options(s)
	args := append([]string{"--provider", "codex", "--runtime", runtime, "--workspace", b.workspace, "--network", "none",
		"--handshake_timeout", "60", "--env", "FAKECODEX_CONTROL"}, more...)
	if image != "" {
		args = append(args, "--image", image)
	}
	b.cmd = exec.Command(built.agents, args...)
	b.cmd.Dir = b.workspace
	b.cmd.Env = append(os.Environ(), "CODEX_HOME="+filepath.Dir(b.auth), "PATH="+filepath.Dir(built.fakeCodex)+":"+os.Getenv("PATH"), "FAKECODEX_CONTROL="+socket)
	b.cmd.Env = append(b.cmd.Env, env...)
	b.cmd.Stderr = &b.stderr
	var err error
	b.in, err = b.cmd.StdinPipe()
	require.NoError(b, err)
	out, err := b.cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, b.cmd.Start())
	go b.read(out)
	hearing := make(chan struct{})
	go func() { defer close(hearing); b.hear() }()
	b.Cleanup(func() {
		_ = b.cmd.Process.Kill()
		b.Resume()
		<-b.exited
		_ = b.listener.Close()
		b.mu.Lock()
		if b.control != nil {
			_ = b.control.Close()
		}
		b.mu.Unlock()
		<-hearing
		if b.Failed() {
			b.TB.Log("front end said:\n" + b.stderr.String())
		}
	})
}

// read collects what the front end writes, and its end.
func (b *boxed) read(out io.Reader) {
	chunk := make([]byte, 64<<10)
	for {
		n, err := out.Read(chunk)
		b.mu.Lock()
		for b.paused {
			b.change.Wait()
		}
		b.out = append(b.out, chunk[:n]...)
		b.ended = err != nil
		b.change.Broadcast()
		b.mu.Unlock()
		if err != nil {
			break
		}
	}
	_ = b.cmd.Wait()
	close(b.exited)
}

// hear takes the reports of Codex, until its end.
func (b *boxed) hear() {
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.dead = true
		b.change.Broadcast()
	}()
	control, err := b.listener.Accept()
	if err != nil {
		return
	}
	b.mu.Lock()
	b.control = control
	b.change.Broadcast()
	b.mu.Unlock()
	reports := json.NewDecoder(control)
	for {
		var r struct {
			Got  []byte
			Done bool
		}
		if reports.Decode(&r) != nil {
			return
		}
		b.mu.Lock()
		b.got = append(b.got, r.Got...)
		if r.Done {
			b.done++
		}
		b.change.Broadcast()
		b.mu.Unlock()
	}
}

// until waits for something, which it looks for with the lock held.
func (b *boxed) until(what string, holds func() bool) {
	b.Helper()
	timer := time.AfterFunc(patience, func() { b.mu.Lock(); defer b.mu.Unlock(); b.change.Broadcast() })
	defer timer.Stop()
	deadline := time.Now().Add(patience)
	b.mu.Lock()
	defer b.mu.Unlock()
	for !holds() {
		if !time.Now().Before(deadline) {
			require.FailNow(b, "waited too long for "+what)
		}
		b.change.Wait()
	}
}

// The workspace is /ws for scenarios.
func (b *boxed) outside(text string) string { return strings.ReplaceAll(text, "/ws", b.workspace) }
func (b *boxed) inside(text string) string  { return strings.ReplaceAll(text, b.workspace, "/ws") }

func (b *boxed) Send(text string) {
	_, _ = io.WriteString(b.in, b.outside(text)) // a front end that has ended is seen by what did not come
}

func (b *boxed) Disconnect() {
	b.gone = true
	_ = b.in.Close()
}

func (b *boxed) Do(s scenario.Step, later bool) {
	b.Helper()
	b.until("Codex", func() bool { return b.control != nil || b.dead || b.ended })
	if b.control == nil {
		require.FailNow(b, "Codex was not started")
	}
	step := map[string]any{"do": s.Do, "text": b.outside(s.Text), "code": s.Code}
	if s.Do == "raw" {
		b.mid = !strings.HasSuffix(s.Text, "\n")
		step["text"], step["data"] = "", []byte(b.outside(s.Text))
	}
	b.deaf = b.deaf || s.Do == "deaf"
	line, err := json.Marshal(step)
	require.NoError(b, err)
	b.sent++
	if _, err := b.control.Write(line); err == nil && !later {
		b.until("a step of Codex", func() bool { return b.done == b.sent || b.dead })
	}
}

// Settle sends a mark from the client to Codex, and one from Codex to the
// client: what came before them is done when they have come through.
func (b *boxed) Settle() {
	b.Helper()
	b.settled++
	mark := fmt.Sprintf(`{"jsonrpc":"2.0","method":"codextest/mark","params":{"n":%d}}`+"\n", b.settled)
	take := func(from *[]byte) func() bool {
		seen := 0
		return func() bool {
			begin := max(0, seen-len(mark))
			at := bytes.Index((*from)[begin:], []byte(mark))
			if seen = len(*from); at >= 0 {
				at += begin
				*from = append((*from)[:at:at], (*from)[at+len(mark):]...)
			}
			return at >= 0 || b.dead || b.ended
		}
	}
	switch {
	case b.gone:
	case b.deaf:
		time.Sleep(moment + b.late)
	default:
		begin := time.Now()
		b.Send(mark)
		b.until("a mark at Codex", take(&b.got))
		b.late = max(b.late, time.Since(begin))
	}
	b.mu.Lock()
	dead, paused := b.dead, b.paused
	b.mu.Unlock()
	switch {
	case dead:
		b.until("the end of the output", func() bool { return b.ended })
	case paused || b.mid:
		time.Sleep(moment + b.late)
	default:
		begin := time.Now()
		b.Do(scenario.Step{Do: "raw", Text: mark}, true)
		b.until("a mark at the client", take(&b.out))
		b.late = max(b.late, time.Since(begin))
	}
}

func (b *boxed) Sleep(d time.Duration) { time.Sleep(d * time.Duration(b.stretch)) }
func (b *boxed) Stretch() int          { return b.stretch }
func (b *boxed) Late() time.Duration   { return b.late }
func (b *boxed) MaxCommentary() int    { return 1 << 20 }

func (b *boxed) Pause()  { b.setPaused(true) }
func (b *boxed) Resume() { b.setPaused(false) }

func (b *boxed) setPaused(paused bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paused = paused
	b.change.Broadcast()
}

func (b *boxed) Take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := string(b.out)
	b.out = nil
	return b.inside(out)
}

func (b *boxed) Got() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.inside(string(b.got))
}

func (b *boxed) Log() string { return b.inside(b.stderr.String()) }

func (b *boxed) Says(text string) bool {
	for begin := time.Now(); !strings.Contains(b.Log(), text); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > 10*time.Second {
			return false
		}
	}
	return true
}

func (b *boxed) Wait() int {
	b.Helper()
	b.Resume()
	select {
	case <-b.exited:
	case <-time.After(patience):
		require.FailNow(b, "the front end did not end")
	}
	b.until("the end of Codex", func() bool { return b.dead || b.control == nil }) // and what it has read
	homes, _ := filepath.Glob(filepath.Join(b.workspace, "tmp", "codex-homes", "*"))
	assert.Empty(b, homes, "no private home is left")
	return b.cmd.ProcessState.ExitCode()
}

func (b *boxed) WrittenBack() bool {
	login, err := os.ReadFile(b.auth)
	require.NoError(b, err)
	return string(login) != loginBefore
}
