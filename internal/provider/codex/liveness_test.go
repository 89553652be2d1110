package codex

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestIdleTimeout(t *testing.T) {
	cfg := Config{Times: quick}
	scenario(t, "156 211 stderr is no activity", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.says(event(3, "task_started", ""))
		for range 5 {
			pass(50 * ms)
			_, err := io.WriteString(b.codexes[0].stderr, "busy\n")
			require.NoError(t, err)
		}
		b.output()
		pass(50 * ms)
		out := b.messages()
		require.Len(t, out, 1)
		assert.Equal(t, -32001, out[0].Error.Code)
		assert.True(t, strings.HasPrefix(out[0].Error.Message, "mcp-agents: codex pass-through request idle timeout (0s)"), out[0].Error.Message)
		for _, token := range []string{"stayed connected", "verify", "Codex thread: T1."} {
			assert.Contains(t, out[0].Error.Message, token)
		}
		assert.Equal(t, 1, strings.Count(b.codexGot(), `"params":{"requestId":3,"reason":"mcp-agents: idle timeout (0s)"}`), "told once")
		assert.Contains(t, b.log.String(), "WARNING codex turn abandoned while possibly still running: request 3 (idle timeout (0s)); thread_id=T1 job_id=none sandbox_mode=workspace-write")
		assert.Contains(t, b.log.String(), "NOT confirmed stopped")
		b.leave()
		assert.Contains(t, b.log.String(), "1 abandoned codex turn(s) were still unaccounted for at teardown")
	})
	scenario(t, "163 events of others and pings", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""), turnCall(4, ""))
		for range 3 {
			pass(90 * ms)
			b.says(event(4, "token_count", "") + event(`"3"`, "task_started", "") + `{"jsonrpc":"2.0","method":"codex/event","params":{}}` + "\n")
			b.send(pingLine(`"p"`))
			b.says(`{"jsonrpc":"2.0","id":"p","result":{}}` + "\n")
		}
		b.output()
		pass(30 * ms)
		answers := b.answers()
		assert.Equal(t, -32001, answers["3"].Error.Code)
		assert.NotContains(t, answers, "4", "its own events renew it")
		b.says(native(4, "four"))
		assert.Contains(t, b.answers(), "4")
		b.leave()
	})
	scenario(t, "171 the next call works", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		pass(300 * ms)
		b.send(turnCall(4, ""))
		b.says(native(3, "late") + native(4, "four"))
		out := b.output()
		assert.NotContains(t, out, "late", "184 a late answer is dropped")
		assert.Contains(t, out, native(4, "four"))
		b.send(turnCall(3, ""))
		b.says(native(3, "again"))
		b.expect(native(3, "again"))
		b.leave()
	})
	scenario(t, "every request has the deadlines", cfg, func(t *testing.T, b *testBridge) {
		b.send(`{"jsonrpc":"2.0","id":"x","method":"resources/list"}`)
		pass(300 * ms)
		assert.Contains(t, b.answers()[`"x"`].Error.Message, "idle timeout")
		b.leave()
		assert.NotContains(t, b.log.String(), "abandoned", "it is no turn")
	})
	scenario(t, "0 switches it off", Config{Times: Times{Hard: time.Hour, CancelGrace: ms, TerminalGrace: ms, FlushStall: ms}}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		pass(time.Hour - ms)
		assert.Empty(t, b.output())
		pass(ms)
		assert.Contains(t, b.answers()["3"].Error.Message, "hard timeout (3600s)")
		b.leave()
	})
}

func TestHardTimeout(t *testing.T) {
	times := quick
	times.Hard = 550 * ms
	scenario(t, "186 it is never extended", Config{Times: times}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		for range 5 {
			pass(100 * ms)
			b.says(event(3, "token_count", ""))
		}
		b.output()
		pass(50 * ms)
		assert.Contains(t, b.answers()["3"].Error.Message, "request hard timeout (1s)")
		b.leave()
	})
	scenario(t, "a cancel clears it", Config{Times: Times{Hard: 50 * ms, CancelGrace: 200 * ms, FlushStall: time.Minute}}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""), cancelLine(3))
		pass(150 * ms)
		assert.Empty(t, b.output())
		b.leave()
	})
}

func TestIdlePauses(t *testing.T) {
	const question = `{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"_meta":{"requestId":3,"threadId":"T1"},"message":"may I?"}}` + "\n"
	scenario(t, "B41 while the client owes an answer", Config{Times: quick}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.says(question)
		b.expect(question)
		pass(time.Second)
		assert.Empty(t, b.output())
		b.send(`{"jsonrpc":"2.0","id":0,"result":{"action":"accept"}}`)
		assert.Contains(t, b.codexGot(), `"action":"accept"`)
		pass(299 * ms)
		assert.Empty(t, b.output(), "the answer renews the time")
		pass(2 * ms)
		assert.Contains(t, b.answers()["3"].Error.Message, "idle timeout")
		b.leave()
	})
	scenario(t, "B41 two questions of one id", Config{Times: quick}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.says(question + question)
		b.output()
		b.send(`{"jsonrpc":"2.0","id":0,"result":{}}`)
		pass(301 * ms)
		assert.Contains(t, b.answers()["3"].Error.Message, "idle timeout", "one answer ends the pause")
		b.leave()
	})
	scenario(t, "by thread as well", Config{Times: quick}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.says(event(3, "task_started", "") + strings.Replace(question, `"requestId":3,`, "", 1))
		b.output()
		pass(time.Second)
		assert.Empty(t, b.output())
		b.leave()
	})
}

func TestIdlePausesForClientThatDoesNotRead(t *testing.T) {
	scenario(t, "151 back-pressure", Config{Times: quick}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.pause()
		go io.WriteString(b.codexes[0].stdout, strings.Repeat(event(4, "token_count", `"x":"`+strings.Repeat("x", 100<<10)+`"`), 20))
		pass(time.Second)
		b.resume()
		pass(200 * ms)
		assert.NotContains(t, b.output(), "-32001", "what Codex said meanwhile has not been seen")
		pass(200 * ms)
		assert.Contains(t, b.output(), "-32001", "afterwards it counts again")
		b.leave()
	})
}

func TestHalfWrittenLine(t *testing.T) {
	half := `{"jsonrpc":"2.0","id":3,"result":{"par`
	scenario(t, "170 it is never ended", Config{Times: quick}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""), turnCall(4, `"t"`))
		b.says(half)
		pass(300 * ms)
		assert.Empty(t, b.output(), "it may be the answer")
		pass(200 * ms)
		out := b.output()
		assert.NotContains(t, out, `{"par`, "nothing of it reached the client")
		assert.Equal(t, 1, strings.Count(out, `"id":3,"error":{"code":-32001`))
		assert.Equal(t, 1, strings.Count(out, `"id":4,"error":{"code":-32001`))
		b.end(1)
		assert.Contains(t, b.log.String(), "finalize: request idle timeout (0s), and codex left a frame unterminated")
	})
	scenario(t, "152 it is ended in time", Config{Times: quick}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""), turnCall(4, ""))
		b.says(half)
		pass(450 * ms)
		b.says("tial\":1}}\n")
		assert.Contains(t, b.answers()["4"].Error.Message, "idle timeout")
		b.says(native(4, "late"))
		assert.Empty(t, b.output())
		b.leave()
		assert.NotContains(t, b.log.String(), "request 3 (", "its answer came")
	})
	scenario(t, "it is another's", Config{Times: quick}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.says(`{"method":"no`)
		pass(350 * ms)
		b.says("te\"}\n")
		out := b.output()
		assert.True(t, strings.HasPrefix(out, `{"method":"note"}`+"\n"), out)
		assert.Contains(t, out, `"id":3,"error":{"code":-32001`)
		b.leave()
	})
	scenario(t, "a cancel meanwhile", Config{Times: quick}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.says(half)
		pass(350 * ms)
		b.send(cancelLine(3))
		b.says("tial\":1}}\n")
		assert.Empty(t, b.output())
		b.leave()
	})
	scenario(t, "150 it is a whole message", Config{Times: quick}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.says(strings.TrimSpace(native(3, "whole")))
		pass(time.Second)
		b.expect(native(3, "whole"))
		b.end(1)
	})
}

func TestHardTimeoutInGrace(t *testing.T) {
	end := event(3, "task_complete", `"last_agent_message":"GRACE"`)
	scenario(t, "172 inside a half frame", Config{Times: Times{Idle: 5 * time.Second, Hard: time.Second, TerminalGrace: 200 * ms, CancelGrace: time.Second, FlushStall: time.Minute}},
		func(t *testing.T, b *testBridge) {
			b.send(turnCall(3, ""))
			b.says(end + `{"jsonrpc":"2.0","id":3,"res`)
			b.expect(end)
			pass(999 * ms)
			assert.Empty(t, b.output())
			pass(2 * ms)
			b.expect(`{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"GRACE"}],"structuredContent":{"threadId":"T1","content":"GRACE"}}}`)
			b.end(1)
		})
	scenario(t, "173 between frames", Config{Times: Times{Idle: 5 * time.Second, Hard: 200 * ms, TerminalGrace: time.Second, CancelGrace: 500 * ms, FlushStall: time.Minute}},
		func(t *testing.T, b *testBridge) {
			b.send(turnCall(3, ""))
			pass(150 * ms)
			b.says(end)
			pass(50 * ms)
			assert.Equal(t, "GRACE", b.answers()["3"].Result.Content[0].Text)
			b.send(turnCall(4, ""))
			b.says(native(4, "four"))
			b.expect(native(4, "four"))
			b.leave()
		})
}

func TestFlushStall(t *testing.T) {
	times := Times{Hard: 20 * time.Second, TerminalGrace: 80 * ms, CancelGrace: 5 * time.Second, FlushStall: 400 * ms, ProgressInterval: ms}
	scenario(t, "174 a message waits", Config{Times: times}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, `"t"`))
		b.says(event(3, "task_started", "") + `{"method":"ha`)
		pass(399 * ms)
		out := b.messages()
		require.Len(t, out, 1, "the event")
		pass(2 * ms)
		b.output()
		b.end(1)
		assert.Contains(t, b.log.String(), "left a frame unterminated")
	})
	times.ProgressInterval, times.WaitInterval, times.FlushStall = 20*ms, 100*ms, 2*time.Second
	scenario(t, "175 notices give no more time", Config{Times: times}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, `"t"`))
		b.says(`{"method":"ha`)
		start := time.Now()
		b.end(1)
		assert.Equal(t, 2100*ms, time.Since(start))
	})
	scenario(t, "the end of the line takes it back", Config{Times: times}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, `"t"`))
		for range 5 {
			b.says(`{"method":"ha`)
			pass(1500 * ms)
			b.says("lf\"}\n")
		}
		b.leave()
	})
}
