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

	"mcpagents/internal/provider/codex/codextest"
	"mcpagents/internal/relay"
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
		later := &fakeCodex{script: []step{{on: `"initialize"`, out: codextest.NativeInitialize}, {on: "tools/list", out: codextest.NativeList("$id") + "\n"}, {on: "tools/call", out: codextest.NativeAnswer}}}
		b := startBridge(t, Config{}, launched{err: errNoEngine}, launched{err: errNoEngine}, launched{codex: later})
		b.read()
		start := time.Now()
		b.send(codextest.InitializeLine)
		b.expect(localInitialize)
		b.send(initializedLine, codextest.ListLine, codextest.PingLine(`"p"`), `{"id":8,"method":"resources/list"}`, `{"method":"notifications/x"}`)
		b.expect(localList(2), codextest.Pong(`"p"`), `{"jsonrpc":"2.0","id":8,"error":{"code":-32601,"message":"Method not found"}}`)
		assert.Zero(t, time.Since(start), "without a Codex nothing waits")
		b.send(codextest.CallLine)
		b.expect(toolErrorLine(3, errNoEngine.Text))
		assert.Equal(t, 2, b.launches, "the call tried again")

		call := strings.Replace(codextest.CallLine, `"id":3`, `"id":30`, 1)
		b.send(call)
		b.expect(codextest.WithID(codextest.NativeAnswer, 30))
		private := strings.Replace(codextest.InitializeLine, `"id":1`, `"id":"mcp-agents/codex/initialize/3"`, 1)
		assert.Equal(t, strings.Join([]string{private, initializedLine,
			`{"id":"mcp-agents/codex/tools-list/3","jsonrpc":"2.0","method":"tools/list"}`, call, ""}, "\n"), later.got())
		b.disconnect()
		b.end(0)
		assert.Equal(t, 2, strings.Count(b.log.String(), "failed to start codex: no container engine answers"))
	})
}

func TestProtocolVersionOfLocalInitialize(t *testing.T) {
	for asked, want := range map[string]string{`"2024-11-05"`: "2024-11-05", `"1999-01-01"`: "2025-11-25", `7`: "2025-11-25"} {
		synctest.Test(t, func(t *testing.T) {
			b := startBridge(t, Config{}, launched{err: errNoEngine})
			b.read()
			b.send(strings.Replace(codextest.InitializeLine, `"2025-06-18"`, asked, 1))
			assert.Contains(t, b.output(), `"protocolVersion":"`+want+`"`)
			b.disconnect()
			b.end(0)
		})
	}
}

func TestOtherToolsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := `{"jsonrpc":"2.0","id":$id,"result":{"tools":[{"name":"codex"}]}}` + "\n"
		later := &fakeCodex{script: []step{{on: `"initialize"`, out: codextest.NativeInitialize}, {on: "tools/list", out: other}, {on: "tools/call", out: codextest.NativeAnswer}}}
		b := startBridge(t, Config{}, launched{err: errNoEngine}, launched{codex: later})
		b.read()
		b.send(codextest.InitializeLine, initializedLine, codextest.ListLine)
		b.output()
		b.send(codextest.CallLine)
		b.expect(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, codextest.WithID(codextest.NativeAnswer, 3))
		b.disconnect()
		b.end(0)
	})
}

func TestSlowLaunch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		codex := &fakeCodex{script: []step{{on: `"initialize"`, out: codextest.NativeInitialize}, {on: "tools/list", out: codextest.NativeList("$id") + "\n"}, {on: `"id":31`, out: codextest.NativeAnswer}}}
		gate := make(chan struct{})
		b := startBridge(t, Config{}, launched{codex: codex, gate: gate})
		b.read()
		b.send(codextest.InitializeLine, initializedLine)
		time.Sleep(DefaultHandshakeTimeout - time.Millisecond)
		require.Empty(t, b.output(), "the launch has its time")
		time.Sleep(2 * time.Millisecond)
		b.expect(localInitialize)
		b.send(codextest.ListLine, codextest.CallLine, `{"method":"notifications/cancelled","params":{"requestId":3}}`, strings.Replace(codextest.CallLine, `"id":3`, `"id":31`, 1))
		time.Sleep(time.Minute)
		b.expect(localList(2))
		close(gate)
		b.expect(codextest.WithID(codextest.NativeAnswer, 31))
		assert.Equal(t, 1, strings.Count(codex.got(), "notifications/initialized"))
		assert.NotContains(t, codex.got(), `"id":3,`, "a call that was cancelled while it waited drops out silently")
		assert.NotContains(t, codex.got(), "cancelled")
		assert.Equal(t, 1, b.launches)
		b.disconnect()
		b.end(0)
	})
}

func TestQuickLaunchKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		codex := &fakeCodex{script: handshakeSteps()}
		gate := make(chan struct{})
		b := startBridge(t, Config{}, launched{codex: codex, gate: gate})
		b.read()
		b.send(codextest.InitializeLine, initializedLine, "not json", codextest.CallLine)
		close(gate)
		b.expect(codextest.WithID(codextest.NativeInitialize, 1))
		assert.Equal(t, strings.Join([]string{codextest.InitializeLine, initializedLine, "not json", codextest.CallLine, ""}, "\n"), codex.got())
		b.disconnect()
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
				b.read()
				b.send(codextest.InitializeLine)
				assert.Contains(t, b.output(), localInitialize+"\n")
				b.send(codextest.CallLine)
				assert.Contains(t, b.output(), toolErrorLine(3, "the Codex CLI 0.171.0 has no mcp-server command: use an image with Codex 0.153.4 or earlier (0.154.0 removed the command)"))
				b.disconnect()
				b.end(0)
				assert.Equal(t, 2, strings.Count(b.log.String(), "failed to start codex"), "one line for each try")
			})
		}
	})
	t.Run("dies with a message", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dying := func() launched {
				return launched{codex: &fakeCodex{script: []step{{on: "initialize", err: "warning\nbad config\n", exit: exits(2)}}}}
			}
			b := startBridge(t, Config{}, dying(), dying())
			b.read()
			b.send(codextest.InitializeLine, codextest.CallLine)
			b.expect(localInitialize, toolErrorLine(3, "Codex ended before it answered initialize (codex exited with code 2): bad config"))
			b.disconnect()
			b.end(0)
		})
	})
	t.Run("its last words come after its exit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := startBridge(t, Config{}, launched{codex: &fakeCodex{script: []step{{on: "tools/call", exit: exits(2), late: "bad config\n"}}}})
			b.read()
			b.send(codextest.InitializeLine, codextest.CallLine)
			time.Sleep(time.Second)
			b.expect(localInitialize, toolErrorLine(3, "Codex ended before it answered initialize (codex exited with code 2): bad config"))
			b.disconnect()
			b.end(0)
		})
	})
}

func TestCodexThatDoesNotAnswer(t *testing.T) {
	t.Run("hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			hung := &fakeCodex{}
			works := &fakeCodex{script: []step{{on: `"initialize"`, out: codextest.NativeInitialize}, {on: "tools/call", out: codextest.NativeAnswer}}}
			b := startBridge(t, Config{}, launched{codex: hung}, launched{codex: works})
			b.read()
			b.send(codextest.InitializeLine)
			time.Sleep(DefaultHandshakeTimeout)
			b.expect(localInitialize)
			time.Sleep(time.Hour)
			b.send(codextest.PingLine(5), codextest.CallLine)
			time.Sleep(DefaultHandshakeTimeout)
			b.expect(codextest.Pong(5), toolErrorLine(3, "Codex started but has not answered initialize within 5s; if it is only slow, raise --handshake_timeout"))
			b.send(strings.Replace(codextest.CallLine, `"id":3`, `"id":33`, 1))
			b.expect(codextest.WithID(codextest.NativeAnswer, 33))
			b.send(codextest.PingLine(5)) // what the first one owed, the second does not
			time.Sleep(DefaultHandshakeTimeout)
			b.expect(codextest.Pong(5))
			b.disconnect()
			b.end(0)
		})
	})
	t.Run("is only slow", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			slow := &fakeCodex{script: []step{{on: "release"}, {out: codextest.WithID(codextest.NativeInitialize, 1) + codextest.NativeList(2) + "\n"}, {on: "tools/call", out: codextest.NativeAnswer}}}
			b := startBridge(t, Config{}, launched{codex: slow})
			b.read()
			b.send(codextest.InitializeLine, codextest.ListLine)
			time.Sleep(DefaultHandshakeTimeout)
			b.expect(localInitialize, localList(2))
			b.send(`{"method":"release"}`)
			b.expect() // late answers are swallowed
			b.send(codextest.CallLine)
			b.expect(codextest.WithID(codextest.NativeAnswer, 3))
			b.send(strings.Replace(codextest.ListLine, `"id":2`, `"id":1`, 1)) // the id is free again
			assert.Contains(t, slow.got(), `"id":1,"method":"tools/list"`)
			b.disconnect()
			b.end(0)
		})
	})
	t.Run("owes too much", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := startBridge(t, Config{}, launched{codex: &fakeCodex{script: handshakeSteps()}})
			b.read()
			b.send(codextest.InitializeLine)
			for i := range maxSuppressed {
				b.send(codextest.PingLine(100 + i))
			}
			b.output()
			time.Sleep(DefaultHandshakeTimeout)
			assert.Equal(t, maxSuppressed, strings.Count(b.output(), `"result":{}`))
			b.end(1)
			assert.Contains(t, b.log.String(), "late-response suppression limit reached")
		})
	})
}

func TestReusedIDOfSwallowedAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBridge(t, Config{}, launched{codex: &fakeCodex{script: handshakeSteps()}})
		b.read()
		b.send(codextest.InitializeLine, codextest.PingLine(7))
		time.Sleep(DefaultHandshakeTimeout)
		b.output()
		b.send(codextest.PingLine(7))
		b.expect(codextest.Aborted(7, "request id 7 was reused while it was in flight"))
		b.end(1)
	})
}

// TestNextLaunchWaitsForLastChild: a login that the first child changed must be
// written back before the second one gets its copy.
func TestNextLaunchWaitsForLastChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := &fakeCodex{script: []step{{on: "initialize", exit: exits(1)}}, closing: make(chan struct{})}
		second := &fakeCodex{script: []step{{on: `"initialize"`, out: codextest.NativeInitialize}, {on: "tools/call", out: codextest.NativeAnswer}}}
		b := startBridge(t, Config{}, launched{codex: first}, launched{codex: second})
		b.read()
		b.send(codextest.InitializeLine)
		b.expect(localInitialize)
		b.send(codextest.CallLine, codextest.PingLine(5))
		b.expect(codextest.Pong(5))
		assert.Equal(t, 1, b.launches)
		close(first.closing)
		b.expect(codextest.WithID(codextest.NativeAnswer, 3))
		assert.Equal(t, 2, b.launches)
		b.disconnect()
		b.end(0)
	})
}

func TestAnswerUnderWayIsNotOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := `{"jsonrpc":"2.0","id":2,"result":"` + strings.Repeat("x", relay.MaxLine)
		codex := &fakeCodex{script: handshakeSteps(step{on: "tools/list", out: long}, step{on: "go", out: "\"}\n"})}
		b := startBridge(t, Config{}, launched{codex: codex})
		b.read()
		b.send(codextest.InitializeLine, codextest.ListLine)
		require.Len(t, b.output(), len(codextest.WithID(codextest.NativeInitialize, 1))+len(long))
		time.Sleep(2 * DefaultHandshakeTimeout)
		b.send(`{"method":"go"}`)
		b.expect(`"}`)
		b.disconnect()
		b.end(0)
	})
}
