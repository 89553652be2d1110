package codex

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/mcp/proxy"
	"mcpagents/internal/testkit/scenario"
)

var errNoEngine = &LaunchError{Text: "no container engine answers; start Docker or pass --runtime local", Err: errors.New("dial")}

func localList(id any) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":%s}`, id, newCatalog(DefaultModels).local())
}

func toolErrorLine(id any, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":{"content":[{"type":"text","text":"mcp-agents: Codex is not available: %s. The next call tries again."}],"isError":true}}`, id, text)
}

func TestLaunchFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		later := &fakeCodex{script: []step{{on: `"initialize"`, out: scenario.NativeInitialize}, {on: "tools/list", out: scenario.NativeList("$id") + "\n"}, {on: "tools/call", out: scenario.NativeAnswer}}}
		b := startBridge(t, Config{}, launched{err: errNoEngine}, launched{err: errNoEngine}, launched{codex: later})
		b.Read()
		start := time.Now()
		b.Send(scenario.InitializeLine)
		b.Expect(localInitialize)
		b.Send(initializedLine, scenario.ListLine, scenario.PingLine(`"p"`), `{"id":8,"method":"resources/list"}`, `{"method":"notifications/x"}`)
		b.Expect(localList(2), scenario.Pong(`"p"`), `{"jsonrpc":"2.0","id":8,"error":{"code":-32601,"message":"Method not found"}}`)
		assert.Zero(t, time.Since(start), "without a Codex nothing waits")
		b.Send(scenario.CallLine)
		b.Expect(toolErrorLine(3, errNoEngine.Text))
		assert.Equal(t, 2, b.launches, "the call tried again")

		call := strings.Replace(scenario.CallLine, `"id":3`, `"id":30`, 1)
		b.Send(call)
		b.Expect(scenario.WithID(scenario.NativeAnswer, 30))
		private := strings.Replace(scenario.InitializeLine, `"id":1`, `"id":"mcp-agents/codex/initialize/3"`, 1)
		assert.Equal(t, strings.Join([]string{private, initializedLine,
			`{"id":"mcp-agents/codex/tools-list/3","jsonrpc":"2.0","method":"tools/list"}`, call, ""}, "\n"), later.got())
		b.Disconnect()
		b.end(0)
		assert.Equal(t, 2, strings.Count(b.Log.String(), "failed to start codex: no container engine answers"))
	})
}

func TestProtocolVersionOfLocalInitialize(t *testing.T) {
	for asked, want := range map[string]string{`"2024-11-05"`: "2024-11-05", `"1999-01-01"`: "2025-11-25", `7`: "2025-11-25"} {
		synctest.Test(t, func(t *testing.T) {
			b := startBridge(t, Config{}, launched{err: errNoEngine})
			b.Read()
			b.Send(strings.Replace(scenario.InitializeLine, `"2025-06-18"`, asked, 1))
			assert.Contains(t, b.Output(), `"protocolVersion":"`+want+`"`)
			b.Disconnect()
			b.end(0)
		})
	}
}

func TestOtherToolsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := `{"jsonrpc":"2.0","id":$id,"result":{"tools":[{"name":"codex"}]}}` + "\n"
		later := &fakeCodex{script: []step{{on: `"initialize"`, out: scenario.NativeInitialize}, {on: "tools/list", out: other}, {on: "tools/call", out: scenario.NativeAnswer}}}
		b := startBridge(t, Config{}, launched{err: errNoEngine}, launched{codex: later})
		b.Read()
		b.Send(scenario.InitializeLine, initializedLine, scenario.ListLine)
		b.Output()
		b.Send(scenario.CallLine)
		b.Expect(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, scenario.WithID(scenario.NativeAnswer, 3))
		b.Disconnect()
		b.end(0)
	})
}

func TestSlowLaunch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		codex := &fakeCodex{script: []step{{on: `"initialize"`, out: scenario.NativeInitialize}, {on: "tools/list", out: scenario.NativeList("$id") + "\n"}, {on: `"id":31`, out: scenario.NativeAnswer}}}
		gate := make(chan struct{})
		b := startBridge(t, Config{}, launched{codex: codex, gate: gate})
		b.Read()
		b.Send(scenario.InitializeLine, initializedLine)
		time.Sleep(DefaultHandshakeTimeout - time.Millisecond)
		require.Empty(t, b.Output(), "the launch has its time")
		time.Sleep(2 * time.Millisecond)
		b.Expect(localInitialize)
		b.Send(scenario.ListLine, scenario.CallLine, `{"method":"notifications/cancelled","params":{"requestId":3}}`, strings.Replace(scenario.CallLine, `"id":3`, `"id":31`, 1))
		time.Sleep(time.Minute)
		b.Expect(localList(2))
		close(gate)
		b.Expect(scenario.WithID(scenario.NativeAnswer, 31))
		assert.Equal(t, 1, strings.Count(codex.got(), "notifications/initialized"))
		assert.NotContains(t, codex.got(), `"id":3,`, "a call that was cancelled while it waited drops out silently")
		assert.NotContains(t, codex.got(), "cancelled")
		assert.Equal(t, 1, b.launches)
		b.Disconnect()
		b.end(0)
	})
}

func TestQuickLaunchKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		codex := &fakeCodex{script: handshakeSteps()}
		gate := make(chan struct{})
		b := startBridge(t, Config{}, launched{codex: codex, gate: gate})
		b.Read()
		b.Send(scenario.InitializeLine, initializedLine, "not json", scenario.CallLine)
		close(gate)
		b.Expect(scenario.WithID(scenario.NativeInitialize, 1))
		assert.Equal(t, strings.Join([]string{scenario.InitializeLine, initializedLine, "not json", scenario.CallLine, ""}, "\n"), codex.got())
		b.Disconnect()
		b.end(0)
	})
}

// A launcher meets three kinds of Codex: one that serves (every other test), one
// that lacks the command, one that hangs.

func TestCodexThatCannotServe(t *testing.T) {
	t.Run("lacks mcp-server", func(t *testing.T) {
		for _, where := range []string{"stderr", "stdout"} {
			synctest.Test(t, func(t *testing.T) {
				s := step{err: "Error: stdin is not a terminal\n", exit: exits(0)}
				if where == "stdout" {
					s.out, s.err = s.err, ""
				}
				first, second := &fakeCodex{version: "0.171.0", script: []step{s}}, &fakeCodex{version: "0.171.0", script: []step{s}}
				b := startBridge(t, Config{}, launched{codex: first}, launched{codex: second})
				b.Read()
				b.Send(scenario.InitializeLine)
				assert.Contains(t, b.Output(), localInitialize+"\n")
				b.Send(scenario.CallLine)
				assert.Contains(t, b.Output(), toolErrorLine(3, "the Codex CLI 0.171.0 has no mcp-server command: use an image with Codex 0.153.4 or earlier (0.154.0 removed the command)"))
				b.Disconnect()
				b.end(0)
				assert.Equal(t, 2, strings.Count(b.Log.String(), "failed to start codex"), "one line for each try")
			})
		}
	})
	t.Run("dies with a message", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dying := func() launched {
				return launched{codex: &fakeCodex{script: []step{{on: "initialize", err: "warning\nbad config\n", exit: exits(2)}}}}
			}
			b := startBridge(t, Config{}, dying(), dying())
			b.Read()
			b.Send(scenario.InitializeLine, scenario.CallLine)
			b.Expect(localInitialize, toolErrorLine(3, "Codex ended before it answered initialize (codex exited with code 2): bad config"))
			b.Disconnect()
			b.end(0)
		})
	})
	t.Run("its last words come after its exit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := startBridge(t, Config{}, launched{codex: &fakeCodex{script: []step{{on: "tools/call", exit: exits(2), late: "bad config\n"}}}})
			b.Read()
			b.Send(scenario.InitializeLine, scenario.CallLine)
			time.Sleep(time.Second)
			b.Expect(localInitialize, toolErrorLine(3, "Codex ended before it answered initialize (codex exited with code 2): bad config"))
			b.Disconnect()
			b.end(0)
		})
	})
}

func TestCodexThatDoesNotAnswer(t *testing.T) {
	t.Run("hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			hung := &fakeCodex{}
			works := &fakeCodex{script: []step{{on: `"initialize"`, out: scenario.NativeInitialize}, {on: "tools/call", out: scenario.NativeAnswer}}}
			b := startBridge(t, Config{}, launched{codex: hung}, launched{codex: works})
			b.Read()
			b.Send(scenario.InitializeLine)
			time.Sleep(DefaultHandshakeTimeout)
			b.Expect(localInitialize)
			time.Sleep(time.Hour)
			b.Send(scenario.PingLine(5), scenario.CallLine)
			time.Sleep(DefaultHandshakeTimeout)
			b.Expect(scenario.Pong(5), toolErrorLine(3, "Codex started but has not answered initialize within 5s; if it is only slow, raise --handshake_timeout"))
			b.Send(strings.Replace(scenario.CallLine, `"id":3`, `"id":33`, 1))
			b.Expect(scenario.WithID(scenario.NativeAnswer, 33))
			b.Send(scenario.PingLine(5)) // what the first one owed, the second does not
			time.Sleep(DefaultHandshakeTimeout)
			b.Expect(scenario.Pong(5))
			b.Disconnect()
			b.end(0)
		})
	})
	t.Run("is only slow", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			slow := &fakeCodex{script: []step{{on: "release"}, {out: scenario.WithID(scenario.NativeInitialize, 1) + scenario.NativeList(2) + "\n"}, {on: "tools/call", out: scenario.NativeAnswer}}}
			b := startBridge(t, Config{}, launched{codex: slow})
			b.Read()
			b.Send(scenario.InitializeLine, scenario.ListLine)
			time.Sleep(DefaultHandshakeTimeout)
			b.Expect(localInitialize, localList(2))
			b.Send(`{"method":"release"}`)
			b.Expect() // late answers are swallowed
			b.Send(scenario.CallLine)
			b.Expect(scenario.WithID(scenario.NativeAnswer, 3))
			b.Send(strings.Replace(scenario.ListLine, `"id":2`, `"id":1`, 1)) // the id is free again
			assert.Contains(t, slow.got(), `"id":1,"method":"tools/list"`)
			b.Disconnect()
			b.end(0)
		})
	})
	t.Run("owes too much", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := startBridge(t, Config{}, launched{codex: &fakeCodex{script: handshakeSteps()}})
			b.Read()
			b.Send(scenario.InitializeLine)
			for i := range maxSuppressed {
				b.Send(scenario.PingLine(100 + i))
			}
			b.Output()
			time.Sleep(DefaultHandshakeTimeout)
			assert.Equal(t, maxSuppressed, strings.Count(b.Output(), `"result":{}`))
			b.end(1)
			assert.Contains(t, b.Log.String(), "late-response suppression limit reached")
		})
	})
}

func TestReusedIDOfSwallowedAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBridge(t, Config{}, launched{codex: &fakeCodex{script: handshakeSteps()}})
		b.Read()
		b.Send(scenario.InitializeLine, scenario.PingLine(7))
		time.Sleep(DefaultHandshakeTimeout)
		b.Output()
		b.Send(scenario.PingLine(7))
		b.Expect(scenario.Aborted(7, "request id 7 was reused while it was in flight"))
		b.end(1)
	})
}

// TestNextLaunchWaitsForLastChild: a login that the first child changed must be
// written back before the second one gets its copy.
func TestNextLaunchWaitsForLastChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := &fakeCodex{script: []step{{on: "initialize", exit: exits(1)}}, closing: make(chan struct{})}
		second := &fakeCodex{script: []step{{on: `"initialize"`, out: scenario.NativeInitialize}, {on: "tools/call", out: scenario.NativeAnswer}}}
		b := startBridge(t, Config{}, launched{codex: first}, launched{codex: second})
		b.Read()
		b.Send(scenario.InitializeLine)
		b.Expect(localInitialize)
		b.Send(scenario.CallLine, scenario.PingLine(5))
		b.Expect(scenario.Pong(5))
		assert.Equal(t, 1, b.launches)
		close(first.closing)
		b.Expect(scenario.WithID(scenario.NativeAnswer, 3))
		assert.Equal(t, 2, b.launches)
		b.Disconnect()
		b.end(0)
	})
}

func TestAnswerUnderWayIsNotOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := `{"jsonrpc":"2.0","id":2,"result":"` + strings.Repeat("x", proxy.MaxLine)
		codex := &fakeCodex{script: handshakeSteps(step{on: "tools/list", out: long}, step{on: "go", out: "\"}\n"})}
		b := startBridge(t, Config{}, launched{codex: codex})
		b.Read()
		b.Send(scenario.InitializeLine, scenario.ListLine)
		require.Len(t, b.Output(), len(scenario.WithID(scenario.NativeInitialize, 1))+len(long))
		time.Sleep(2 * DefaultHandshakeTimeout)
		b.Send(`{"method":"go"}`)
		b.Expect(`"}`)
		b.Disconnect()
		b.end(0)
	})
}
