package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func peeks(l *table) {
	times := quick
	times.Idle = 500 * ms
	cfg := Settings{Times: times}
	patient := cfg
	patient.Times.Idle = 2 * time.Second
	l.scenario("121 122 123 a turn under way", patient, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.waits(1200 * ms / time.Duration(b.stage.Stretch()))
		b.says(Event(3, "task_started", ""))
		b.output()
		m := b.ask("codex-peek", "{}")
		require.Len(t, m.rows(), 1)
		row := m.rows()[0]
		if elapsed, _ := row["elapsedSeconds"].(float64); b.real() && elapsed > 1 {
			row["elapsedSeconds"] = 1.0 // a busy machine
		}
		assert.Equal(t, map[string]any{"requestId": "number:3", "tool": "codex", "state": "running", "threadId": "T1", "cwd": "/ws", "cwdInferred": false,
			"sandbox": "workspace-write", "elapsedSeconds": 1.0, "lastActivitySeconds": 0.0}, row)
		assert.EqualValues(t, 1, m.field("count"))
		assert.EqualValues(t, 0, m.field("canceling"))
		assert.Equal(t, false, m.field("ambiguous"))
		assert.NotContains(t, m.text(), Secret)
		for filter, want := range map[string]int{`{"cwd":"/ws//"}`: 1, `{"cwd":"/w"}`: 0, `{"threadId":"T1"}`: 1, `{"threadId":"T2"}`: 0,
			`{"requestId":"number:3"}`: 1, `{"requestId":"string:3"}`: 0, `{"cwd":"/ws","threadId":"T2"}`: 0} {
			assert.Len(t, b.ask("codex-peek", filter).rows(), want, filter)
		}
		b.leave()
	})
	l.scenario("124 125 120 none, and bad arguments", cfg, func(t testing.TB, b *Bridge) {
		m := b.ask("codex-peek", "{}")
		assert.Equal(t, []any{}, m.field("turns"))
		assert.Contains(t, m.text(), "not evidence")
		for arguments, problem := range map[string]string{`{"requestId":3}`: "must be a string", `{"requestId":" "}`: "must not be blank", `{"x":1}`: "is not supported",
			`{"cwd":"rel"}`: "must be an absolute path", `null`: "must be an object"} {
			b.send(ToolLine(9, "codex-peek", arguments))
			assert.Contains(t, b.output(), problem)
		}
		b.leave()
	})
	l.scenario("126 a reply's directory", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.says(Event(3, "task_started", "") + Native(3, "x"))
		b.send(ToolLine(4, "codex-reply", `{"prompt":"p","threadId":"T1"}`), ToolLine(5, "codex-reply", `{"prompt":"p","threadId":"unknown"}`))
		b.output()
		all := b.ask("codex-peek", "{}").rows()
		require.Len(t, all, 2)
		assert.Equal(t, "/ws", all[0]["cwd"])
		assert.Equal(t, true, all[0]["cwdInferred"])
		assert.Equal(t, "workspace-write", all[0]["sandbox"])
		assert.Equal(t, true, all[1]["cwdUnknown"])
		assert.NotContains(t, all[1], "cwd")
		m := b.ask("codex-peek", `{"cwd":"/elsewhere"}`)
		assert.Len(t, m.rows(), 1, "a filter does not hide what may be there")
		m = b.ask("codex-peek", `{"cwd":"/ws"}`)
		assert.Equal(t, true, m.field("ambiguous"))
		b.leave()
	})
	l.scenario("127 129 an abandoned call", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.passes(times.Idle)
		b.output()
		m := b.ask("codex-peek", "{}")
		assert.EqualValues(t, 1, m.field("abandonedTurnsProcessWide"))
		assert.EqualValues(t, 0, m.field("count"))
		assert.Contains(t, m.text(), "given up")
		b.says(Native(3, "late"))
		assert.EqualValues(t, 0, b.ask("codex-peek", "{}").field("abandonedTurnsProcessWide"))
		b.leave()
	})
	l.scenario("128 130 131 an abandoned job", cfg, func(t testing.TB, b *Bridge) {
		id := b.start()
		m := b.ask("codex-peek", "{}")
		require.Len(t, m.rows(), 1)
		assert.Equal(t, id, m.rows()[0]["jobId"])
		assert.NotContains(t, m.rows()[0], "requestId")
		assert.NotContains(t, m.text(), "mcp-agents/")
		private := b.privateID(0)
		b.passes(times.Idle)
		assert.EqualValues(t, 1, b.ask("codex-peek", "{}").field("abandonedTurnsProcessWide"))
		b.says(Native(private, "late"))
		assert.EqualValues(t, 0, b.ask("codex-peek", "{}").field("abandonedTurnsProcessWide"))
		b.leave()
		b.logged("job_id=" + id)
	})
	l.scenario("121 being cancelled, and in its grace", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""), CancelLine(3), TurnCall(4, ""))
		b.says(Event(4, "task_complete", ""))
		b.output()
		m := b.ask("codex-peek", "{}")
		require.Len(t, m.rows(), 1)
		assert.Equal(t, "canceling", m.rows()[0]["state"])
		assert.EqualValues(t, 1, m.field("canceling"))
		assert.True(t, strings.Contains(m.text(), "told to stop"))
		b.leave()
	})
}
