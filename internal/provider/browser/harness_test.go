package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"mcpagents/internal/lease"
	"mcpagents/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ms = time.Millisecond

const (
	testSession     = "0000-session"
	initializeLine  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18", "capabilities":{"roots":{}},"clientInfo":{"name":"t","version":"1"}} }`
	initializedLine = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	listLine        = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	nativeInit      = `{"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"chrome_devtools","version":"1"}}}`
	nativeTools     = `{"jsonrpc":"2.0", "id":$id,"result":{"tools":[{"name":"click","description":"Clicks."},{"name":"lighthouse_audit","description":"Audits."},` +
		`{"name":"upload_file"},{"name":"slow","inputSchema":{"type":"object"}}]}}`
	nativeOK = `{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":"done \u00e9"}] } }`
)

// fakeTool is a chrome-devtools-mcp in memory. It answers the handshake and
// every call but those of "slow", and asks nothing.
type fakeTool struct {
	args   []string
	mute   []string // what it does not answer: parts of lines
	answer map[string]string

	mu       sync.Mutex
	received bytes.Buffer
	stdout   io.Writer
	stderr   io.Writer
	end      func(wire.Exit)
	closed   int
	playing  sync.WaitGroup
}

func (f *fakeTool) start() *lease.Child {
	stdinR, stdinW := io.Pipe()
	stdoutR, stdoutW := io.Pipe()
	stderrR, stderrW := io.Pipe()
	exit := make(chan wire.Exit, 1)
	var once sync.Once
	f.stdout, f.stderr = stdoutW, stderrW
	f.end = func(e wire.Exit) {
		once.Do(func() {
			stdoutW.Close()
			stderrW.Close()
			exit <- e
		})
	}
	f.playing.Go(func() { f.play(stdinR) })
	return &lease.Child{Stdin: stdinW, Stdout: stdoutR, Stderr: stderrR, Source: "explicit",
		Wait: func(ctx context.Context) (wire.Exit, error) {
			select {
			case e := <-exit:
				return e, nil
			case <-ctx.Done():
				return wire.Exit{}, ctx.Err()
			}
		},
		Close: func(context.Context) error {
			f.closed++
			for _, c := range []io.Closer{stdinR, stdoutR, stderrR, stdoutW, stderrW} {
				c.Close()
			}
			f.playing.Wait()
			return nil
		}}
}

func (f *fakeTool) play(stdin io.Reader) {
	lines := bufio.NewReader(stdin)
	for {
		line, err := lines.ReadString('\n')
		f.mu.Lock()
		f.received.WriteString(line)
		f.mu.Unlock()
		if err != nil {
			f.end(wire.Exit{Reason: wire.ReasonExit})
			return
		}
		if out := f.reply(line); out != "" {
			io.WriteString(f.stdout, out+"\n")
		}
	}
}

func (f *fakeTool) reply(line string) string {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Name string }
	}
	_ = json.Unmarshal([]byte(line), &m)
	for _, part := range f.mute {
		if strings.Contains(line, part) {
			return ""
		}
	}
	out := ""
	switch {
	case m.ID == nil || m.Method == "":
	case f.answer[m.Method] != "":
		out = f.answer[m.Method]
	case m.Method == "initialize":
		out = nativeInit
	case m.Method == "tools/list":
		out = nativeTools
	case m.Method == "tools/call" && m.Params.Name != "slow":
		out = nativeOK
	}
	return strings.ReplaceAll(out, "$id", string(m.ID))
}

func (f *fakeTool) got() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.received.String()
}

// fakeLessor lends browsers in memory and notes what it is asked for.
type fakeLessor struct {
	mu       sync.Mutex
	log      []string
	acquires int

	acquire  func(n int, req lease.Request) (lease.Record, error) // nil lends one
	wait     map[string]time.Duration                             // of acquire, identity, status, release
	identity string                                               // of the browser that answers now; empty: as lent
	silent   bool                                                 // no browser answers
	state    lease.State
	refusal  error // of a release
}

func (f *fakeLessor) note(ctx context.Context, op, text string) error {
	f.mu.Lock()
	f.log = append(f.log, strings.TrimSpace(op+" "+text))
	wait := f.wait[op]
	f.mu.Unlock()
	if wait == 0 {
		return nil
	}
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fakeLessor) Acquire(ctx context.Context, req lease.Request) (lease.Record, error) {
	f.mu.Lock()
	f.acquires++
	n := f.acquires
	acquire := f.acquire
	f.mu.Unlock()
	if err := f.note(ctx, "acquire", fmt.Sprint(req.LocalPort)); err != nil {
		return lease.Record{}, &lease.ProvisioningError{Text: "the browser lease helper was ended", Err: err}
	}
	if acquire != nil {
		if rec, err := acquire(n, req); err != nil {
			return rec, err
		}
	}
	return lease.Record{Session: req.Session, Generation: fmt.Sprintf("g%d", n), BrowserURL: browserURL(req.LocalPort)}, nil
}

func (f *fakeLessor) Status(ctx context.Context, rec lease.Record) (lease.State, error) {
	if err := f.note(ctx, "status", rec.Generation); err != nil {
		return lease.Unknown, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state == lease.Unknown {
		return f.state, errors.New("exit 70")
	}
	return f.state, nil
}

func (f *fakeLessor) Release(ctx context.Context, rec lease.Record, reason lease.Reason) error {
	_ = f.note(ctx, "release", rec.Generation+" "+string(reason))
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refusal
}

func (f *fakeLessor) Identity(ctx context.Context, rec lease.Record) (string, error) {
	if err := f.note(ctx, "identity", rec.Generation); err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.silent:
		return "", errors.New("connection refused")
	case f.identity != "":
		return f.identity, nil
	}
	return "browser of " + rec.Generation, nil
}

// set changes what happens from now on.
func (f *fakeLessor) set(change func(*fakeLessor)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// becomes makes another browser answer.
func (f *fakeLessor) becomes(id string) { f.set(func(f *fakeLessor) { f.identity = id }) }

// slow makes one kind of question take its time.
func (f *fakeLessor) slow(op string, d time.Duration) { f.set(func(f *fakeLessor) { f.wait[op] = d }) }

// count is how often a browser was asked for.
func (f *fakeLessor) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.acquires
}

// asked returns what was asked since the last call.
func (f *fakeLessor) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	log := f.log
	f.log = nil
	return log
}

// testBridge is a bridge under test and its client.
type testBridge struct {
	*testing.T
	lessor *fakeLessor
	in     *io.PipeWriter
	outR   *io.PipeReader
	cancel context.CancelCauseFunc
	code   chan int
	log    *syncBuffer

	mu      sync.Mutex
	out     bytes.Buffer
	reading sync.WaitGroup
	gate    chan struct{} // full: the client does not read
	tools   []*fakeTool
	plan    []*fakeTool // of the starts to come; nil in it fails
	port    int
}

type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// Port and Start make testBridge a lease.Downstream.
func (b *testBridge) Port(context.Context) (int, error) {
	b.port++
	return b.port, nil
}

func (b *testBridge) Start(_ context.Context, args []string) (*lease.Child, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	tool := &fakeTool{}
	if len(b.plan) > 0 {
		tool, b.plan = b.plan[0], b.plan[1:]
	}
	if tool == nil {
		return nil, errors.New("npx is not on PATH: install it.")
	}
	tool.args = args
	b.tools = append(b.tools, tool)
	return tool.start(), nil
}

// tool is the tool server that was started as number i, from 0.
func (b *testBridge) tool(i int) *fakeTool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tools[i]
}

func (b *testBridge) starts() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.tools)
}

// plans says what the next starts give.
func (b *testBridge) plans(plan ...*fakeTool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.plan = plan
}

// startBridge runs a bridge. It must be called in a synctest bubble.
func startBridge(t *testing.T, cfg Config, plan ...*fakeTool) *testBridge {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	b := &testBridge{T: t, lessor: &fakeLessor{wait: map[string]time.Duration{}}, in: inW, outR: outR, code: make(chan int, 1),
		log: &syncBuffer{}, gate: make(chan struct{}, 1), plan: plan, port: 7000}
	var ctx context.Context
	ctx, b.cancel = context.WithCancelCause(context.Background())
	cfg.Lessor, cfg.Downstream, cfg.Session, cfg.Viewport, cfg.Version = b.lessor, b, testSession, "1440x900", "1.2.3"
	cfg.Log = slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	t.Cleanup(func() { // after a failed assertion; otherwise everything has ended
		b.cancel(Signal(9))
		b.in.Close()
		b.outR.Close()
		b.reading.Wait()
	})
	go func() {
		code := Run(ctx, cfg, inR, outW)
		outW.Close()
		b.code <- code
	}()
	b.reading.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := outR.Read(buf)
			b.gate <- struct{}{}
			b.mu.Lock()
			b.out.Write(buf[:n])
			b.mu.Unlock()
			<-b.gate
			if err != nil {
				return
			}
		}
	})
	synctest.Wait()
	return b
}

// scenario runs play with a bridge whose client has done the handshake.
func scenario(t *testing.T, name string, cfg Config, play func(t *testing.T, b *testBridge), plan ...*fakeTool) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := startBridge(t, cfg, plan...)
			b.send(initializeLine, initializedLine, listLine)
			b.output()
			play(t, b)
		})
	})
}

// send writes lines and waits until everybody has done with them.
func (b *testBridge) send(lines ...string) {
	b.Helper()
	_, err := io.WriteString(b.in, strings.Join(lines, "\n")+"\n")
	require.NoError(b, err)
	synctest.Wait()
}

// output returns everything that came since the last call.
func (b *testBridge) output() string {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.out.String()
	b.out.Reset()
	return out
}

// expect asserts what came since the last call, line by line.
func (b *testBridge) expect(lines ...string) {
	b.Helper()
	want := ""
	for _, l := range lines {
		want += strings.TrimSuffix(l, "\n") + "\n"
	}
	require.Equal(b, want, b.output())
}

// answers returns what came since the last call, by id as it stands in the
// message. Each id is answered once.
func (b *testBridge) answers() map[string]answer {
	b.Helper()
	all := map[string]answer{}
	for line := range strings.Lines(b.output()) {
		var a answer
		require.NoError(b, json.Unmarshal([]byte(line), &a), line)
		if a.Method != "" {
			continue
		}
		_, twice := all[string(a.ID)]
		require.False(b, twice, "answered twice: %s", line)
		all[string(a.ID)] = a
	}
	return all
}

type answer struct {
	ID     json.RawMessage
	Method string
	Error  *struct {
		Code    int
		Message string
	}
	Result struct {
		Content    []struct{ Text string }
		IsError    bool
		Structured map[string]any `json:"structuredContent"`
	}
}

func (a answer) code() string {
	code, _ := a.Result.Structured["code"].(string)
	return code
}

func (a answer) text() string {
	if len(a.Result.Content) == 0 {
		return ""
	}
	return a.Result.Content[len(a.Result.Content)-1].Text
}

// requireReplaced asserts that a is the result of a lost browser: after means
// that the call may have had its effect.
func (b *testBridge) requireReplaced(a answer, after bool) {
	b.Helper()
	require.Equal(b, codeReplaced, a.code(), "%+v", a)
	require.True(b, a.Result.IsError)
	require.Equal(b, after, a.Result.Structured["outcomeUnknown"])
	require.Equal(b, true, a.Result.Structured["stateLost"])
	require.True(b, strings.HasPrefix(a.text(), "mcp-agents: "), a.text())
	if after {
		require.Contains(b, a.text(), "never blindly replay")
		require.Equal(b, "inspect_state_never_blindly_replay", a.Result.Structured["action"])
		require.NotContains(b, a.Result.Structured, "failClosed")
	} else {
		require.Equal(b, "reacquire_before_next_call", a.Result.Structured["action"])
		require.Equal(b, true, a.Result.Structured["failClosed"])
	}
}

// says makes the latest tool server write text.
func (b *testBridge) says(text string) {
	b.Helper()
	_, err := io.WriteString(b.tool(b.starts()-1).stdout, text)
	require.NoError(b, err)
	synctest.Wait()
}

// end waits for the bridge, and asserts its exit status and that every child
// was closed exactly once.
func (b *testBridge) end(code int) {
	b.Helper()
	require.Equal(b, code, <-b.code)
	b.in.Close()
	b.reading.Wait()
	for i, c := range b.tools {
		assert.Equal(b, 1, c.closed, "child %d is closed exactly once", i+1)
	}
}

// disconnect ends the client's messages.
func (b *testBridge) disconnect() { b.in.Close(); synctest.Wait() }

// leave ends a scenario as a client does.
func (b *testBridge) leave() {
	b.Helper()
	b.disconnect()
	b.end(0)
}

// pass lets time pass.
func pass(d time.Duration) {
	time.Sleep(d) // of the bubble's clock
	synctest.Wait()
}

func withID(line string, id any) string { return strings.ReplaceAll(line, "$id", fmt.Sprint(id)) }

// call calls a tool; the token is JSON, empty for none.
func call(id any, tool, token string) string {
	meta := ""
	if token != "" {
		meta = `"_meta":{"progressToken":` + token + `},`
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":"tools/call","params":{%s"name":%q,"arguments":{}}}`, id, meta, tool)
}

func cancelLine(id any) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%v}}`, id)
}
