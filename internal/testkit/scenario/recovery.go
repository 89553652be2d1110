package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const abortMessage = "mcp-agents: codex reported turn_aborted: the turn did not complete. Any writes it made are in the tree; " +
	"verify the workspace before you repeat it. Codex thread: T1."

func recoveries(l *table) {
	cfg := Settings{Times: quick}
	complete := Event(3, "task_complete", `"last_agent_message":"DONE é\u00e9"`)
	result := `{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"DONE éé"}],"structuredContent":{"threadId":"T1","content":"DONE éé"}}}`
	for _, kind := range []string{"task_complete", "turn_complete"} {
		l.scenario("178 "+kind, cfg, func(t testing.TB, b *Bridge) {
			b.send(TurnCall(3, ""))
			end := strings.Replace(complete, "task_complete", kind, 1)
			b.says(end)
			b.waits(50 * ms)
			b.expect(end)
			b.passes(30 * ms)
			b.expect(result)
			b.logged("settled completed codex request from terminal event for request 3 (thread_id=T1)")
			b.logsNone("éé")
			b.says(Native(3, "late"))
			assert.Empty(t, b.output(), "184")
			b.leave()
		})
	}
	l.scenario("178 without a text or a thread", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.says(`{"method":"codex/event","params":{"_meta":{"requestId":3},"msg":{"type":"task_complete","last_agent_message":null}}}` + "\n")
		b.output()
		b.passes(80 * ms)
		b.expect(`{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":""}],"structuredContent":{"threadId":"","content":""}}}`)
		b.leave()
	})
	l.scenario("184 a late answer after a long time", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.says(complete)
		b.passes(500 * ms)
		if !b.real() {
			b.passes(time.Hour)
		}
		b.output()
		b.says(Native(3, "late") + `{"method":"x"}` + "\n")
		b.expect(`{"method":"x"}`)
		b.leave()
	})
	l.scenario("179 aborted", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.says(Event(3, "turn_aborted", ""))
		b.passes(80 * ms)
		m := b.answers()["3"]
		assert.Equal(t, -32001, m.code())
		assert.Equal(t, abortMessage, m.problem())
		b.leave()
	})
	l.scenario("180 at Codex's exit", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""), TurnCall(4, ""))
		b.says(complete)
		b.output()
		b.exits(3)
		b.expect(result, Aborted(4, "codex exited with code 3"))
		b.ends(3)
		b.logged("recovered completed codex request 3 during teardown")
	})
	l.scenario("181 aborted, at Codex's exit", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.says(Event(3, "turn_aborted", ""))
		b.output()
		b.exits(0)
		assert.Equal(t, abortMessage, b.answers()["3"].problem())
		b.ends(0)
		b.logged("recovered aborted codex request 3 during teardown")
	})
	l.scenario("182 the native answer wins", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.says(complete)
		b.waits(40 * ms)
		b.says(Native(3, "native"))
		b.expect(complete, Native(3, "native"))
		b.passes(100 * ms)
		assert.Empty(t, b.output())
		b.leave()
	})
	l.scenario("183 also after an abort", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.says(Event(3, "turn_aborted", "") + Native(3, "native"))
		b.expect(Event(3, "turn_aborted", ""), Native(3, "native"))
		b.logged("WARNING native codex response settled aborted request 3; forwarding unchanged")
		b.leave()
	})
	l.scenario("the end of another thread's turn is not this one's", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.says(strings.Replace(complete, `"requestId":3`, `"requestId":4`, 1))
		b.output()
		b.passes(200 * ms)
		assert.Empty(t, b.output())
		b.leave()
	})
	l.scenario("172 the grace passes inside a half frame", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.says(complete + `{"jsonrpc":"2.0","id":3,`)
		b.passes(150 * ms)
		b.expect(complete)
		b.says(`"result":{}}` + "\n")
		b.expect(`{"jsonrpc":"2.0","id":3,"result":{}}`)
		b.leave()
	})
	l.scenario("172 ... of another message", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.says(complete + `{"method":`)
		b.passes(150 * ms)
		b.says("\"x\"}\n")
		b.expect(complete, `{"method":"x"}`, result)
		b.leave()
	})
	l.scenario("4.12 a thread is named", Settings{Times: quick}, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.says(Event(3, "task_started", ""))
		b.output()
		b.exits(1)
		m := b.answers()["3"]
		require.NotNil(t, m.Error)
		assert.True(t, strings.HasSuffix(m.problem(), " Codex thread: T1."), m.problem())
		b.ends(1)
	})
}
