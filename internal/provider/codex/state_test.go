package codex

import (
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/relay"
)

// TestTransitions is the whole machine as text: state, input, place, next state
// and action. A pair that is not here changes nothing.
func TestTransitions(t *testing.T) {
	const want = `open answered settled deliver
open ended finishing awaitAnswer
open canceled canceling stopTurn
open deadline between settled expire
open deadline inline overdue awaitLine
finishing answered settled deliver
finishing grace between settled recoverAnswer
finishing grace inline lapsed watchLine
finishing deadline between settled recoverAnswer
finishing deadline inline finishing tearDown
finishing canceled between settled confirm
finishing canceled inline confirmed awaitLine
lapsed answered settled deliver
lapsed lineEnd settled recoverAnswer
lapsed deadline lapsed tearDown
lapsed canceled confirmed awaitLine
overdue answered settled deliver
overdue ended finishing awaitAnswer
overdue lineEnd settled expire
overdue canceled canceling stopTurn
overdue grace stuck awaitLine
stuck answered settled deliver
stuck ended finishing awaitAnswer
stuck lineEnd settled expire
stuck canceled canceling stopTurn
stuck grace stuck tearDown
canceling answered settled discard
canceling ended between settled confirm
canceling ended inline confirmed awaitLine
canceling grace between settled abandon
canceling grace inline unheard awaitLine
confirmed answered settled discard
confirmed lineEnd settled confirm
confirmed grace confirmed tearDown
unheard answered settled discard
unheard ended between settled confirm
unheard ended inline confirmed awaitLine
unheard lineEnd settled abandon
unheard grace unheard tearDown
`
	var got strings.Builder
	for _, r := range rules() {
		name := runtime.FuncForPC(reflect.ValueOf(r.act).Pointer()).Name()
		fmt.Fprintf(&got, "%s %s %s%s %s\n", r.in, r.on, [...]string{"", "between ", "inline "}[r.at], r.to, name[strings.LastIndexByte(name, '.')+1:])
	}
	assert.Equal(t, want, got.String())
	for s := open; s < settled; s++ {
		assert.NotNil(t, ruleFor(s, answered, false), "an answer settles every state: %s", s)
		assert.Equal(t, settled, ruleFor(s, answered, true).to)
	}
	for in := answered; in <= lineEnd; in++ {
		assert.Nil(t, ruleFor(settled, in, false), "nothing happens after the end")
	}
	seen := map[string]bool{}
	for _, r := range rules() {
		for _, mid := range []bool{false, true} {
			if r.at == anywhere || (r.at == inLine) == mid {
				key := fmt.Sprint(r.in, r.on, mid)
				assert.False(t, seen[key], "two rules for %s", key)
				seen[key] = true
			}
		}
	}
}

func TestCancel(t *testing.T) {
	cfg := Config{Times: quick}
	aborted := event(3, "turn_aborted", `"reason":"interrupted"`)
	scenario(t, "188 B36 unacknowledged", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""), turnCall(4, ""), cancelLine(3))
		assert.Equal(t, 2, strings.Count(b.codexGot(), `"requestId":3`), "ours and the client's")
		b.send(cancelLine(3))
		assert.Equal(t, 2, strings.Count(b.codexGot(), `"requestId":3`), "repeated: nothing new")
		b.says(event(4, "task_started", ""))
		b.expect(event(4, "task_started", ""))
		pass(100 * ms)
		assert.Contains(t, b.log.String(), "request 3 (cancellation not acknowledged within 100ms)")
		b.says(event(4, "token_count", "") + native(3, "late") + native(4, "four"))
		b.expect(event(4, "token_count", ""), native(4, "four"))
		assert.Contains(t, b.log.String(), "abandoned codex turn finished after 0s (thread_id=none job_id=none)")
		b.leave()
		assert.NotContains(t, b.log.String(), "unaccounted")
	})
	scenario(t, "192 confirmed by the end, without an answer, as Codex 0.153.4 does", cfg, func(t *testing.T, b *testBridge) {
		for range 40 {
			b.send(turnCall(3, ""), cancelLine(3))
			b.says(aborted)
		}
		b.expect(strings.Split(strings.Repeat(aborted, 40), "\n")[:40]...)
		b.says(native(3, "late"))
		assert.Empty(t, b.output(), "an answer that comes all the same is dropped")
		b.leave()
		assert.NotContains(t, b.log.String(), "abandoned")
		assert.NotContains(t, b.log.String(), "limit reached", "a confirmed cancel owes nothing")
	})
	scenario(t, "192 the end and the answer at once", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""), cancelLine(3))
		b.says(aborted + native(3, "late"))
		b.expect(aborted)
		b.send(turnCall(3, ""))
		b.says(native(3, "again"))
		b.expect(native(3, "again"))
		b.leave()
	})
	scenario(t, "191 a second end", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""), turnCall(4, ""), cancelLine(3))
		b.says(aborted + aborted + event(3, "task_complete", ""))
		b.says(event(4, "task_complete", `"last_agent_message":"one"`) + event(4, "task_complete", `"last_agent_message":"two"`) + event(4, "turn_aborted", ""))
		b.output()
		pass(80 * ms)
		assert.Equal(t, "one", b.answers()["4"].Result.Content[0].Text)
		b.leave()
	})
	scenario(t, "189 confirmed late, inside a half frame", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""), cancelLine(3))
		pass(95 * ms)
		b.says(aborted + `{"method":"ha`)
		pass(95 * ms)
		b.says("lf\"}\n")
		b.expect(aborted, `{"method":"half"}`)
		pass(time.Second)
		b.leave()
		assert.NotContains(t, b.log.String(), "abandoned")
	})
	scenario(t, "190 ... that is never ended", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""), turnCall(4, ""), cancelLine(3))
		b.says(aborted + `{"method":"ha`)
		b.expect(aborted)
		pass(101 * ms)
		out := b.answers()
		assert.NotContains(t, out, "3")
		assert.Equal(t, -32001, out["4"].Error.Code)
		b.end(1)
		assert.Contains(t, b.log.String(), "cancellation was confirmed by turn_aborted, but codex left a frame unterminated")
	})
	scenario(t, "188 unacknowledged inside a half frame", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.says(`{"method":"ha`)
		b.send(cancelLine(3))
		pass(150 * ms)
		b.says("lf\"}\n")
		b.expect(`{"method":"half"}`)
		assert.Contains(t, b.log.String(), "not acknowledged")
		b.leave()
	})
	scenario(t, "190 ... for twice the grace", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.says(`{"method":"ha`)
		b.send(cancelLine(3))
		pass(201 * ms)
		b.end(1)
		assert.Contains(t, b.log.String(), "cancellation was not acknowledged, and codex left a frame unterminated")
	})
	scenario(t, "201 after the end was reported", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.says(event(3, "task_complete", ""))
		b.output()
		b.send(cancelLine(3))
		b.says(native(3, "late"))
		pass(time.Second)
		assert.Empty(t, b.output())
		b.leave()
	})
	scenario(t, "193 while its answer is under way", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		long := `{"jsonrpc":"2.0","id":3,"result":"` + strings.Repeat("x", relay.MaxLine)
		go io.WriteString(b.codexes[0].stdout, long)
		require.Len(t, b.output(), len(long))
		b.send(cancelLine(3))
		b.says("\"}\n")
		b.expect(`"}`)
		b.send(turnCall(3, ""))
		b.says(native(3, "again"))
		b.expect(native(3, "again"))
		b.leave()
	})
	scenario(t, "155 of tools/list, inside a half frame", cfg, func(t *testing.T, b *testBridge) {
		b.send(listLine)
		b.says(`{"method":"ha`)
		b.send(cancelLine(2))
		b.says("lf\"}\n" + nativeList(t) + "\n" + `{"method":"next"}` + "\n")
		b.expect(`{"method":"half"}`, `{"method":"next"}`)
		b.leave()
	})
	scenario(t, "B36 unknown, of another type, and initialize", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""), cancelLine(`"3"`), cancelLine(99), cancelLine("null"), cancelLine(`{"a":3}`), cancelLine(1))
		b.says(native(3, "three"))
		b.expect(native(3, "three"))
		b.send(turnCall(99, ""))
		b.says(native(99, "x"))
		b.expect(native(99, "x"))
		b.leave()
	})
	scenario(t, "a command of the turn goes on", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.says(event(3, "exec_command_begin", `"call_id":"c"`))
		b.send(cancelLine(3))
		b.says(aborted)
		b.output()
		assert.Contains(t, b.log.String(), "WARNING codex turn abandoned while possibly still running: request 3 (its end was reported by turn_aborted, but not that of 1 command(s)")
		assert.EqualValues(t, 1, b.ask("codex-peek", "{}").field("abandonedTurnsProcessWide"))
		b.says(event(3, "exec_command_end", `"call_id":"c"`))
		b.output()
		assert.EqualValues(t, 0, b.ask("codex-peek", "{}").field("abandonedTurnsProcessWide"), "heard of again")
		b.leave()
	})
	scenario(t, "an end after a timeout is heard", cfg, func(t *testing.T, b *testBridge) {
		for range 40 {
			b.send(turnCall(3, ""))
			pass(300 * ms)
			b.says(aborted)
		}
		b.output()
		assert.EqualValues(t, 0, b.ask("codex-peek", "{}").field("abandonedTurnsProcessWide"))
		b.leave()
	})
}

func TestSuppressionLimit(t *testing.T) {
	times := quick
	times.Idle = 0
	scenario(t, "194 32 owed answers", Config{Times: times}, func(t *testing.T, b *testBridge) {
		for i := range maxSuppressed {
			b.send(turnCall(100+i, ""), cancelLine(100+i))
		}
		b.send(turnCall(3, ""))
		pass(100 * ms)
		assert.Contains(t, b.answers()["3"].Error.Message, "late-response suppression limit reached")
		b.end(1)
	})
	scenario(t, "194 one that comes in time", Config{Times: times}, func(t *testing.T, b *testBridge) {
		for i := range maxSuppressed - 1 {
			b.send(turnCall(100+i, ""), cancelLine(100+i))
		}
		pass(100 * ms)
		b.says(native(100, "late"))
		b.send(turnCall(3, ""), cancelLine(3))
		pass(100 * ms)
		assert.Empty(t, b.output())
		b.leave()
	})
}

func TestReuseOfSuppressedID(t *testing.T) {
	scenario(t, "185 while its answer is due", Config{Times: quick}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""), cancelLine(3))
		pass(100 * ms)
		before := strings.Count(b.codexGot(), "tools/call")
		b.send(turnCall(3, ""))
		assert.Contains(t, b.answers()["3"].Error.Message, "reused")
		b.end(1)
		assert.Equal(t, before, strings.Count(b.codexGot(), "tools/call"), "not forwarded")
	})
}
