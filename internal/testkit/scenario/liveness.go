package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// quick are the times of most scenarios.
var quick = Times{Idle: 300 * ms, Hard: 2 * time.Second, TerminalGrace: 80 * ms,
	CancelGrace: 100 * ms, FlushStall: time.Minute, StatusInterval: 1500 * ms, ProgressInterval: time.Second}

func lives(l *table) {
	cfg := Settings{Times: quick}
	l.scenario("156 211 stderr is no activity", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.says(Event(3, "task_started", ""))
		for range 5 {
			b.waits(50 * ms)
			b.stderr("busy\n")
		}
		b.output()
		b.passes(50 * ms)
		out := b.messages()
		require.Len(t, out, 1)
		assert.Equal(t, -32001, out[0].code())
		idle := "idle timeout " + b.seconds(quick.Idle)
		assert.True(t, strings.HasPrefix(out[0].problem(), "mcp-agents: codex pass-through request "+idle), out[0].problem())
		for _, token := range []string{"stayed connected", "verify", "Codex thread: T1."} {
			assert.Contains(t, out[0].problem(), token)
		}
		assert.Equal(t, 1, strings.Count(b.codexGot(), `"params":{"requestId":3,"reason":"mcp-agents: `+idle+`"}`), "told once")
		b.logged("WARNING codex turn abandoned while possibly still running: request 3 (" + idle + "); thread_id=T1 job_id=none sandbox_mode=workspace-write")
		b.logged("NOT confirmed stopped")
		b.leave()
		b.logged("1 abandoned codex turn(s) were still unaccounted for at teardown")
	})
	l.scenario("163 events of others and pings", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""), TurnCall(4, ""))
		for i := range 3 {
			b.waits(80 * ms)
			b.says(Event(4, "token_count", "") + Event(`"3"`, "task_started", "") + `{"jsonrpc":"2.0","method":"codex/event","params":{}}` + "\n")
			b.send(PingLine(50 + i))
			b.says(Pong(50+i) + "\n")
		}
		assert.NotContains(t, b.answers(), "3")
		b.passes(60 * ms)
		answers := b.answers()
		require.Contains(t, answers, "3")
		assert.Equal(t, -32001, answers["3"].code())
		assert.NotContains(t, answers, "4", "its own events renew it")
		b.says(Native(4, "four"))
		assert.Contains(t, b.answers(), "4")
		b.leave()
	})
	l.scenario("171 184 the next call works", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.passes(300 * ms)
		b.send(TurnCall(4, ""))
		b.says(Native(3, "late") + Native(4, "four"))
		out := b.output()
		assert.NotContains(t, out, "late", "a late answer is dropped")
		assert.Contains(t, out, Native(4, "four"))
		b.send(TurnCall(3, ""))
		b.says(Native(3, "again"))
		b.expect(Native(3, "again"))
		b.leave()
	})
	l.scenario("every request has the deadlines", cfg, func(t testing.TB, b *Bridge) {
		b.send(`{"jsonrpc":"2.0","id":"x","method":"resources/list"}`)
		b.passes(300 * ms)
		assert.Contains(t, b.answers()[`"x"`].problem(), "idle timeout")
		b.leave()
		b.logsNone("abandoned") // it is no turn
	})
	l.inMemory("an hour", func() {
		l.scenario("0 switches it off", Settings{Times: Times{Hard: time.Hour, CancelGrace: ms, TerminalGrace: ms, FlushStall: ms}}, func(t testing.TB, b *Bridge) {
			b.send(TurnCall(3, ""))
			b.waits(time.Hour - ms)
			assert.Empty(t, b.output())
			b.passes(ms)
			assert.Contains(t, b.answers()["3"].problem(), "hard timeout (3600s)")
			b.leave()
		})
	})
}

func hardTimeouts(l *table) {
	times := quick
	times.Hard = 550 * ms
	l.scenario("186 it is never extended", Settings{Times: times}, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		for range 4 {
			b.waits(100 * ms)
			b.says(Event(3, "token_count", ""))
		}
		assert.NotContains(t, b.answers(), "3")
		b.passes(150 * ms)
		assert.Contains(t, b.answers()["3"].problem(), "request hard timeout "+b.seconds(times.Hard))
		b.leave()
	})
	l.scenario("a cancel clears it", Settings{Times: Times{Hard: 50 * ms, CancelGrace: 200 * ms, FlushStall: time.Minute}}, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""), CancelLine(3))
		b.waits(120 * ms)
		assert.Empty(t, b.output())
		b.leave()
	})
	end := Event(3, "task_complete", `"last_agent_message":"GRACE"`)
	l.scenario("172 inside a half frame", Settings{Times: Times{Idle: 5 * time.Second, Hard: 500 * ms, TerminalGrace: 100 * ms, CancelGrace: time.Second, FlushStall: time.Minute}},
		func(t testing.TB, b *Bridge) {
			b.send(TurnCall(3, ""))
			b.says(end + `{"jsonrpc":"2.0","id":3,"res`)
			b.expect(end)
			b.waits(400 * ms)
			assert.Empty(t, b.output())
			b.passes(110 * ms)
			b.expect(`{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"GRACE"}],"structuredContent":{"threadId":"T1","content":"GRACE"}}}`)
			b.ends(1)
		})
	l.scenario("173 between frames", Settings{Times: Times{Idle: 5 * time.Second, Hard: 200 * ms, TerminalGrace: time.Second, CancelGrace: 500 * ms, FlushStall: time.Minute}},
		func(t testing.TB, b *Bridge) {
			b.send(TurnCall(3, ""))
			b.waits(120 * ms)
			b.says(end)
			b.passes(80 * ms)
			assert.Equal(t, "GRACE", b.answers()["3"].text())
			b.send(TurnCall(4, ""))
			b.says(Native(4, "four"))
			b.expect(Native(4, "four"))
			b.leave()
		})
}

func pauses(l *table) {
	const question = `{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"_meta":{"requestId":3,"threadId":"T1"},"message":"may I?"}}` + "\n"
	l.scenario("idle pauses while the client owes an answer", Settings{Times: quick}, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.says(question)
		b.expect(question)
		b.waits(600 * ms)
		assert.Empty(t, b.output())
		b.send(`{"jsonrpc":"2.0","id":0,"result":{"action":"accept"}}`)
		assert.Contains(t, b.codexGot(), `"action":"accept"`)
		b.waits(200 * ms)
		assert.Empty(t, b.output(), "the answer renews the time")
		b.passes(101 * ms)
		assert.Contains(t, b.answers()["3"].problem(), "idle timeout")
		b.leave()
	})
	l.scenario("two questions of one id", Settings{Times: quick}, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.says(question + question)
		b.output()
		b.send(`{"jsonrpc":"2.0","id":0,"result":{}}`)
		b.passes(301 * ms)
		assert.Contains(t, b.answers()["3"].problem(), "idle timeout", "one answer ends the pause")
		b.leave()
	})
	l.scenario("a question that names the thread only", Settings{Times: quick}, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.says(Event(3, "task_started", "") + strings.Replace(question, `"requestId":3,`, "", 1))
		b.output()
		b.waits(600 * ms)
		assert.Empty(t, b.output())
		b.leave()
	})
	l.scenario("151 idle pauses for a client that does not read", Settings{Times: quick}, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.stage.Pause()
		b.saysLater(strings.Repeat(Event(4, "token_count", `"x":"`+strings.Repeat("x", 100<<10)+`"`), 20))
		b.waits(600 * ms)
		b.stage.Resume()
		b.waits(150 * ms)
		out := b.output()
		assert.Equal(t, 20, strings.Count(out, "token_count"), "nothing is lost")
		assert.NotContains(t, out, "-32001", "what Codex said meanwhile has not been seen")
		b.passes(200 * ms)
		assert.Contains(t, b.output(), "-32001", "afterwards it counts again")
		b.leave()
	})
}

func halves(l *table) {
	half := `{"jsonrpc":"2.0","id":3,"result":{"par`
	l.scenario("170 a half frame that is never ended", Settings{Times: quick}, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""), TurnCall(4, `"t"`))
		b.says(half)
		b.passes(300 * ms)
		assert.Empty(t, b.output(), "it may be the answer")
		b.passes(200 * ms)
		out := b.output()
		assert.NotContains(t, out, `{"par`, "nothing of it reached the client")
		assert.Equal(t, 1, strings.Count(out, `"id":3,"error":{"code":-32001`))
		assert.Equal(t, 1, strings.Count(out, `"id":4,"error":{"code":-32001`))
		b.ends(1)
		b.logged("finalize: request idle timeout " + b.seconds(quick.Idle) + ", and codex left a frame unterminated")
	})
	l.scenario("152 a half frame that is ended in time", Settings{Times: quick}, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""), TurnCall(4, ""))
		b.says(half)
		b.waits(370 * ms)
		b.says("tial\":1}}\n")
		answers := b.answers()
		assert.Contains(t, answers["4"].problem(), "idle timeout")
		assert.Nil(t, answers["3"].Error)
		b.says(Native(4, "late"))
		assert.Empty(t, b.output())
		b.leave()
		b.logsNone("request 3 (") // its answer came
	})
	l.scenario("a half frame of another", Settings{Times: quick}, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.says(`{"method":"no`)
		b.waits(350 * ms)
		b.says("te\"}\n")
		out := b.output()
		assert.True(t, strings.HasPrefix(out, `{"method":"note"}`+"\n"), out)
		assert.Contains(t, out, `"id":3,"error":{"code":-32001`)
		b.leave()
	})
	l.scenario("a cancel in an overdue half frame", Settings{Times: quick}, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.says(half)
		b.waits(340 * ms)
		b.send(CancelLine(3))
		b.says("tial\":1}}\n")
		assert.Empty(t, b.output())
		b.leave()
	})
	l.scenario("150 a whole message without its line feed", Settings{Times: quick}, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.says(strings.TrimSpace(Native(3, "whole")))
		b.passes(500 * ms)
		b.expect(Native(3, "whole"))
		b.ends(1)
	})
	times := Times{Hard: 20 * time.Second, TerminalGrace: 80 * ms, CancelGrace: 5 * time.Second, FlushStall: 400 * ms, ProgressInterval: ms}
	l.scenario("174 a message waits for the end of a half frame", Settings{Times: times}, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, `"t"`))
		b.says(Event(3, "task_started", "") + `{"method":"ha`)
		b.waits(320 * ms)
		out := b.messages()
		require.Len(t, out, 1, "the event")
		b.passes(81 * ms)
		b.output()
		b.ends(1)
		b.logged("left a frame unterminated")
	})
	times.ProgressInterval, times.WaitInterval, times.FlushStall = 20*ms, 100*ms, 800*ms
	l.scenario("175 notices give no more time", Settings{Times: times, Stretch: 5}, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, `"t"`))
		b.says(`{"method":"ha`)
		b.waits(750 * ms)
		assert.Empty(t, b.output())
		b.passes(150 * ms) // from the first notice on
		b.ends(1)
		b.logged("left a frame unterminated")
	})
	l.scenario("174 the end of the line takes it back", Settings{Times: times, Stretch: 5}, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, `"t"`))
		for range 3 {
			b.says(`{"method":"ha`)
			b.waits(600 * ms)
			b.says("lf\"}\n")
		}
		assert.Equal(t, 3, strings.Count(b.output(), `{"method":"half"}`))
		b.leave()
	})
}
