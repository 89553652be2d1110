package scenario

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"mcpagents/internal/mcp/proxy"
)

func cancels(l *table) {
	cfg := Settings{Times: quick}
	aborted := Event(3, "turn_aborted", `"reason":"interrupted"`)
	l.scenario("188 unacknowledged", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""), TurnCall(4, ""), CancelLine(3))
		assert.Equal(t, 2, strings.Count(b.codexGot(), `"requestId":3`), "ours and the client's")
		b.send(CancelLine(3))
		assert.Equal(t, 2, strings.Count(b.codexGot(), `"requestId":3`), "repeated: nothing new")
		b.says(Event(4, "task_started", ""))
		b.expect(Event(4, "task_started", ""))
		b.passes(100 * ms)
		b.logged("request 3 (cancellation not acknowledged within " + b.took(quick.CancelGrace) + ")")
		b.says(Event(4, "token_count", "") + Native(3, "late") + Native(4, "four"))
		b.expect(Event(4, "token_count", ""), Native(4, "four"))
		b.logged("abandoned codex turn finished after ")
		b.logged("s (thread_id=none job_id=none)")
		b.leave()
		b.logsNone("unaccounted")
	})
	l.scenario("192 confirmed by the end, without an answer, as Codex 0.153.4 does", cfg, func(t testing.TB, b *Bridge) {
		for range 40 {
			b.send(TurnCall(3, ""), CancelLine(3))
			b.says(aborted)
		}
		b.expect(strings.Split(strings.Repeat(aborted, 40), "\n")[:40]...)
		b.says(Native(3, "late"))
		assert.Empty(t, b.output(), "an answer that comes all the same is dropped")
		b.leave()
		b.logsNone("abandoned")
		b.logsNone("limit reached")
	})
	l.scenario("192 the end and the answer at once", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""), CancelLine(3))
		b.says(aborted + Native(3, "late"))
		b.expect(aborted)
		b.send(TurnCall(3, ""))
		b.says(Native(3, "again"))
		b.expect(Native(3, "again"))
		b.leave()
	})
	l.scenario("191 a second end", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""), TurnCall(4, ""), CancelLine(3))
		b.says(aborted + aborted + Event(3, "task_complete", ""))
		b.says(Event(4, "task_complete", `"last_agent_message":"one"`) + Event(4, "task_complete", `"last_agent_message":"two"`) + Event(4, "turn_aborted", ""))
		b.output()
		b.passes(80 * ms)
		assert.Equal(t, "one", b.answers()["4"].text())
		b.leave()
	})
	l.scenario("189 confirmed late, inside a half frame", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""), CancelLine(3))
		b.waits(40 * ms)
		b.says(aborted + `{"method":"ha`)
		b.waits(80 * ms)
		b.says("lf\"}\n")
		b.expect(aborted, `{"method":"half"}`)
		b.passes(200 * ms)
		b.leave()
		b.logsNone("abandoned")
	})
	l.scenario("190 ... that is never ended", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""), TurnCall(4, ""), CancelLine(3))
		b.says(aborted + `{"method":"ha`)
		b.expect(aborted)
		b.passes(101 * ms)
		out := b.answers()
		assert.NotContains(t, out, "3")
		assert.Equal(t, -32001, out["4"].code())
		b.ends(1)
		b.logged("cancellation was confirmed by turn_aborted, but codex left a frame unterminated")
	})
	l.scenario("188 unacknowledged inside a half frame", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.says(`{"method":"ha`)
		b.send(CancelLine(3))
		b.waits(150 * ms)
		b.says("lf\"}\n")
		b.expect(`{"method":"half"}`)
		b.logged("not acknowledged")
		b.leave()
	})
	l.scenario("190 ... for twice the grace", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.says(`{"method":"ha`)
		b.send(CancelLine(3))
		b.passes(201 * ms)
		b.ends(1)
		b.logged("cancellation was not acknowledged, and codex left a frame unterminated")
	})
	l.scenario("201 after the end was reported", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.says(Event(3, "task_complete", ""))
		b.output()
		b.send(CancelLine(3))
		b.says(Native(3, "late"))
		b.passes(200 * ms)
		assert.Empty(t, b.output())
		b.leave()
	})
	l.scenario("193 while its answer is under way", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		long := `{"jsonrpc":"2.0","id":3,"result":"` + strings.Repeat("x", proxy.MaxLine)
		b.saysLater(long)
		b.streamed(long)
		b.send(CancelLine(3))
		b.says("\"}\n")
		b.expect(`"}`)
		b.send(TurnCall(3, ""))
		b.says(Native(3, "again"))
		b.expect(Native(3, "again"))
		b.leave()
	})
	l.scenario("155 of tools/list, inside a half frame", cfg, func(t testing.TB, b *Bridge) {
		b.send(ListLine)
		b.says(`{"method":"ha`)
		b.send(CancelLine(2))
		b.says("lf\"}\n" + NativeList(2) + "\n" + `{"method":"next"}` + "\n")
		b.expect(`{"method":"half"}`, `{"method":"next"}`)
		b.leave()
	})
	l.scenario("unknown, of another type, and initialize", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""), CancelLine(`"3"`), CancelLine(99), CancelLine("null"), CancelLine(`{"a":3}`), CancelLine(1))
		b.says(Native(3, "three"))
		b.expect(Native(3, "three"))
		b.send(TurnCall(99, ""))
		b.says(Native(99, "x"))
		b.expect(Native(99, "x"))
		b.leave()
	})
	l.scenario("a command of the turn goes on", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.says(Event(3, "exec_command_begin", `"call_id":"c"`))
		b.send(CancelLine(3))
		b.says(aborted)
		b.output()
		b.logged("WARNING codex turn abandoned while possibly still running: request 3 (its end was reported by turn_aborted, but not that of 1 command(s)")
		assert.EqualValues(t, 1, b.ask("codex-peek", "{}").field("abandonedTurnsProcessWide"))
		b.says(Event(3, "exec_command_end", `"call_id":"c"`))
		b.output()
		assert.EqualValues(t, 0, b.ask("codex-peek", "{}").field("abandonedTurnsProcessWide"), "heard of again")
		b.leave()
	})
	l.scenario("an end after a timeout is heard", cfg, func(t testing.TB, b *Bridge) {
		for range 2 { // forty in all, of which no more than 32 could go unheard
			lines, ends := "", ""
			for i := range 20 {
				lines += TurnCall(100+i, "") + "\n"
				ends += Event(100+i, "turn_aborted", "")
			}
			b.send(strings.TrimSpace(lines))
			b.passes(300 * ms)
			b.says(ends)
		}
		b.output()
		assert.EqualValues(t, 0, b.ask("codex-peek", "{}").field("abandonedTurnsProcessWide"))
		b.leave()
	})
}

// maxOwed is how many answers Codex may owe.
const maxOwed = 32

func cancelledTurns(n int) (lines []string) {
	for i := range n {
		lines = append(lines, TurnCall(100+i, ""), CancelLine(100+i))
	}
	return lines
}

func limits(l *table) {
	times := quick
	times.Idle = 0
	l.scenario("194 32 owed answers", Settings{Times: times}, func(t testing.TB, b *Bridge) {
		b.send(append(cancelledTurns(maxOwed), TurnCall(3, ""))...)
		b.passes(100 * ms)
		assert.Contains(t, b.answers()["3"].problem(), "late-response suppression limit reached")
		b.ends(1)
	})
	l.scenario("194 one that comes in time", Settings{Times: times}, func(t testing.TB, b *Bridge) {
		b.send(cancelledTurns(maxOwed - 1)...)
		b.passes(100 * ms)
		b.says(Native(100, "late"))
		b.send(TurnCall(3, ""), CancelLine(3))
		b.passes(100 * ms)
		assert.Empty(t, b.output())
		b.leave()
	})
	l.scenario("185 while its answer is due", Settings{Times: quick}, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""), CancelLine(3))
		b.passes(100 * ms)
		before := strings.Count(b.codexGot(), "tools/call")
		b.send(TurnCall(3, ""))
		assert.Contains(t, b.answers()["3"].problem(), "reused")
		b.ends(1)
		assert.Equal(t, before, strings.Count(b.codexGot(), "tools/call"), "not forwarded")
	})
}
