package browser

import (
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

	"mcpagents/internal/provider/browser/lease"
	"mcpagents/internal/testkit/proxyclient"
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

// testBridge is a bridge under test and its client.
type testBridge struct {
	*proxyclient.Client
	lessor *fakeLessor

	mu    sync.Mutex // of tools and plan
	tools []*fakeTool
	plan  []*fakeTool // of the starts to come; nil in it fails
	port  int
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
	b := &testBridge{lessor: &fakeLessor{wait: map[string]time.Duration{}}, plan: plan, port: 7000}
	cfg.Lessor, cfg.Downstream, cfg.Session, cfg.Viewport, cfg.Version = b.lessor, b, testSession, "1440x900", "1.2.3"
	b.Client = proxyclient.Start(t, func(ctx context.Context, log *slog.Logger, in io.Reader, out io.Writer) int {
		cfg.Log = log
		return Run(ctx, cfg, in, out)
	})
	b.Read()
	synctest.Wait()
	return b
}

// scenario runs play with a bridge whose client has done the handshake.
func scenario(t *testing.T, name string, cfg Config, play func(t *testing.T, b *testBridge), plan ...*fakeTool) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := startBridge(t, cfg, plan...)
			b.Send(initializeLine, initializedLine, listLine)
			b.Output()
			play(t, b)
		})
	})
}

// answers returns what came since the last call, by id as it stands in the
// message. Each id is answered once.
func (b *testBridge) answers() map[string]answer {
	b.Helper()
	all := map[string]answer{}
	for line := range strings.Lines(b.Output()) {
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
	require.Equal(b, code, <-b.Code)
	b.Close()
	for i, c := range b.tools {
		assert.Equal(b, 1, c.closed, "child %d is closed exactly once", i+1)
	}
}

// leave ends a scenario as a client does.
func (b *testBridge) leave() {
	b.Helper()
	b.Disconnect()
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
