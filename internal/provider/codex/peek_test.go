package codex

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rows are the turns of a peek.
func rows(m message) []map[string]any {
	var all []map[string]any
	for _, r := range m.field("turns").([]any) {
		all = append(all, r.(map[string]any))
	}
	return all
}

func TestPeek(t *testing.T) {
	times := quick
	times.Idle = 2 * time.Second
	cfg := Config{Times: times}
	scenario(t, "121 122 123 a turn under way", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		pass(1200 * ms)
		b.says(event(3, "task_started", ""))
		b.output()
		m := b.ask("codex-peek", "{}")
		require.Len(t, rows(m), 1)
		assert.Equal(t, map[string]any{"requestId": "number:3", "tool": "codex", "state": "running", "threadId": "T1", "cwd": "/ws", "cwdInferred": false,
			"sandbox": "workspace-write", "elapsedSeconds": 1.0, "lastActivitySeconds": 0.0}, rows(m)[0])
		assert.EqualValues(t, 1, m.field("count"))
		assert.EqualValues(t, 0, m.field("canceling"))
		assert.Equal(t, false, m.field("ambiguous"))
		assert.NotContains(t, m.Result.Content[0].Text, secret)
		for filter, want := range map[string]int{`{"cwd":"/ws//"}`: 1, `{"cwd":"/w"}`: 0, `{"threadId":"T1"}`: 1, `{"threadId":"T2"}`: 0,
			`{"requestId":"number:3"}`: 1, `{"requestId":"string:3"}`: 0, `{"cwd":"/ws","threadId":"T2"}`: 0} {
			assert.Len(t, rows(b.ask("codex-peek", filter)), want, filter)
		}
		b.leave()
	})
	scenario(t, "124 125 120 none, and bad arguments", cfg, func(t *testing.T, b *testBridge) {
		m := b.ask("codex-peek", "{}")
		assert.Equal(t, []any{}, m.field("turns"))
		assert.Contains(t, m.Result.Content[0].Text, "not evidence")
		for arguments, problem := range map[string]string{`{"requestId":3}`: "must be a string", `{"requestId":" "}`: "must not be blank", `{"x":1}`: "is not supported",
			`{"cwd":"rel"}`: "must be an absolute path", `null`: "must be an object"} {
			b.send(toolLine(9, "codex-peek", arguments))
			assert.Contains(t, b.output(), problem)
		}
		b.leave()
	})
	scenario(t, "126 a reply's directory", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.says(event(3, "task_started", "") + native(3, "x"))
		b.send(toolLine(4, "codex-reply", `{"prompt":"p","threadId":"T1"}`), toolLine(5, "codex-reply", `{"prompt":"p","threadId":"unknown"}`))
		b.output()
		all := rows(b.ask("codex-peek", "{}"))
		require.Len(t, all, 2)
		assert.Equal(t, "/ws", all[0]["cwd"])
		assert.Equal(t, true, all[0]["cwdInferred"])
		assert.Equal(t, "workspace-write", all[0]["sandbox"])
		assert.Equal(t, true, all[1]["cwdUnknown"])
		assert.NotContains(t, all[1], "cwd")
		m := b.ask("codex-peek", `{"cwd":"/elsewhere"}`)
		assert.Len(t, rows(m), 1, "a filter does not hide what may be there")
		m = b.ask("codex-peek", `{"cwd":"/ws"}`)
		assert.Equal(t, true, m.field("ambiguous"))
		b.leave()
	})
	scenario(t, "127 129 an abandoned call", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		pass(2 * time.Second)
		b.output()
		m := b.ask("codex-peek", "{}")
		assert.EqualValues(t, 1, m.field("abandonedTurnsProcessWide"))
		assert.EqualValues(t, 0, m.field("count"))
		assert.Contains(t, m.Result.Content[0].Text, "given up")
		b.says(native(3, "late"))
		assert.EqualValues(t, 0, b.ask("codex-peek", "{}").field("abandonedTurnsProcessWide"))
		b.leave()
	})
	scenario(t, "128 130 131 an abandoned job", cfg, func(t *testing.T, b *testBridge) {
		id := b.start(t)
		m := b.ask("codex-peek", "{}")
		require.Len(t, rows(m), 1)
		assert.Equal(t, id, rows(m)[0]["jobId"])
		assert.NotContains(t, rows(m)[0], "requestId")
		assert.NotContains(t, m.Result.Content[0].Text, privateIDs)
		private := b.privateID(0)
		pass(2 * time.Second)
		assert.EqualValues(t, 1, b.ask("codex-peek", "{}").field("abandonedTurnsProcessWide"))
		b.says(native(private, "late"))
		assert.EqualValues(t, 0, b.ask("codex-peek", "{}").field("abandonedTurnsProcessWide"))
		b.leave()
		assert.Contains(t, b.log.String(), "job_id="+id)
	})
	scenario(t, "121 being cancelled, and in its grace", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""), cancelLine(3), turnCall(4, ""))
		b.says(event(4, "task_complete", ""))
		b.output()
		m := b.ask("codex-peek", "{}")
		require.Len(t, rows(m), 1)
		assert.Equal(t, "canceling", rows(m)[0]["state"])
		assert.EqualValues(t, 1, m.field("canceling"))
		assert.True(t, strings.Contains(m.Result.Content[0].Text, "told to stop"))
		b.leave()
	})
}
