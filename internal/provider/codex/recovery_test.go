package codex

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const abortMessage = "mcp-agents: codex reported turn_aborted: the turn did not complete. Any writes it made are in the tree; " +
	"verify the workspace before you repeat it. Codex thread: T1."

func TestTerminalRecovery(t *testing.T) {
	cfg := Config{Times: quick}
	complete := event(3, "task_complete", `"last_agent_message":"DONE é\u00e9"`)
	result := `{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"DONE éé"}],"structuredContent":{"threadId":"T1","content":"DONE éé"}}}`
	for _, kind := range []string{"task_complete", "turn_complete"} {
		scenario(t, "178 "+kind, cfg, func(t *testing.T, b *testBridge) {
			b.send(turnCall(3, ""))
			end := strings.Replace(complete, "task_complete", kind, 1)
			b.says(end)
			pass(79 * ms)
			b.expect(end)
			pass(ms)
			b.expect(result)
			assert.Contains(t, b.log.String(), "settled completed codex request from terminal event for request 3 (thread_id=T1)")
			assert.NotContains(t, b.log.String(), "éé")
			b.says(native(3, "late"))
			assert.Empty(t, b.output(), "184")
			b.leave()
		})
	}
	scenario(t, "178 without a text or a thread", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.says(`{"method":"codex/event","params":{"_meta":{"requestId":3},"msg":{"type":"task_complete","last_agent_message":null}}}` + "\n")
		b.output()
		pass(80 * ms)
		b.expect(`{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":""}],"structuredContent":{"threadId":"","content":""}}}`)
		b.leave()
	})
	scenario(t, "184 a late answer after a long time", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.says(complete)
		pass(time.Hour)
		b.output()
		b.says(native(3, "late") + `{"method":"x"}` + "\n")
		b.expect(`{"method":"x"}`)
		b.leave()
	})
	scenario(t, "179 aborted", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.says(event(3, "turn_aborted", ""))
		pass(80 * ms)
		m := b.answers()["3"]
		assert.Equal(t, -32001, m.Error.Code)
		assert.Equal(t, abortMessage, m.Error.Message)
		b.leave()
	})
	scenario(t, "180 at Codex's exit", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""), turnCall(4, ""))
		b.says(complete)
		b.output()
		b.codexes[0].end(*exits(3), "")
		b.expect(result, aborted(4, "codex exited with code 3"))
		b.end(3)
		assert.Contains(t, b.log.String(), "recovered completed codex request 3 during teardown")
	})
	scenario(t, "181 aborted, at Codex's exit", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.says(event(3, "turn_aborted", ""))
		b.output()
		b.codexes[0].end(*exits(0), "")
		assert.Equal(t, abortMessage, b.answers()["3"].Error.Message)
		b.end(0)
		assert.Contains(t, b.log.String(), "recovered aborted codex request 3 during teardown")
	})
	scenario(t, "182 the native answer wins", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.says(complete)
		pass(70 * ms)
		b.says(native(3, "native"))
		b.expect(complete, native(3, "native"))
		pass(time.Second)
		assert.Empty(t, b.output())
		b.leave()
	})
	scenario(t, "183 also after an abort", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.says(event(3, "turn_aborted", "") + native(3, "native"))
		b.expect(event(3, "turn_aborted", ""), native(3, "native"))
		assert.Contains(t, b.log.String(), "WARNING native codex response settled aborted request 3; forwarding unchanged")
		b.leave()
	})
	scenario(t, "the end of another thread's turn is not this one's", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.says(strings.Replace(complete, `"requestId":3`, `"requestId":4`, 1))
		b.output()
		pass(200 * ms)
		assert.Empty(t, b.output(), "B44")
		b.leave()
	})
	scenario(t, "172 the grace passes inside a half frame", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.says(complete + `{"jsonrpc":"2.0","id":3,`)
		pass(time.Second)
		b.expect(complete)
		b.says(`"result":{}}` + "\n")
		b.expect(`{"jsonrpc":"2.0","id":3,"result":{}}`)
		b.leave()
	})
	scenario(t, "172 ... of another message", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.says(complete + `{"method":`)
		pass(time.Second)
		b.says("\"x\"}\n")
		b.expect(complete, `{"method":"x"}`, result)
		b.leave()
	})
}

func TestAbortedErrorsNameTheThread(t *testing.T) {
	scenario(t, "4.12 a thread is named", Config{Times: quick}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.says(event(3, "task_started", ""))
		b.output()
		b.codexes[0].end(*exits(1), "")
		m := b.answers()["3"]
		require.NotNil(t, m.Error)
		assert.True(t, strings.HasSuffix(m.Error.Message, " Codex thread: T1."), m.Error.Message)
		b.end(1)
	})
}
