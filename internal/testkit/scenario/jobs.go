package scenario

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/mcp/proxy"
)

// jobTimes are those of the job scenarios.
var jobTimes = Times{Idle: time.Second, Hard: 4 * time.Second, TerminalGrace: 80 * ms, CancelGrace: 100 * ms, FlushStall: time.Minute,
	StatusInterval: 300 * ms, ProgressInterval: time.Second, WaitInterval: 10 * time.Second}

func commentary(id, item, kind, text string) string {
	if kind == "delta" {
		return Event(id, "agent_message_content_delta", fmt.Sprintf(`"item_id":%q,"delta":%s`, item, encode(text)))
	}
	return Event(id, kind, fmt.Sprintf(`"item":{"type":"AgentMessage","id":%q,"phase":"commentary","content":[{"type":"Text","text":%s}]}`, item, encode(text)))
}

func jobLife(l *table) {
	l.scenario("195 107", Settings{Times: jobTimes}, func(t testing.TB, b *Bridge) {
		b.send(ToolLine(10, "codex-start", `{"prompt":"`+Secret+`","cwd":"/ws","sandbox":"read-only","model_reasoning_effort":"max","goal":"g","allow_subagents":true}`))
		out := b.output()
		id := regexp.MustCompile(`"jobId":"([^"]*)"`).FindStringSubmatch(out)[1]
		assert.Contains(t, out, `"structuredContent":{"jobId":"`+id+`","state":"starting","cursor":0,"message":"Codex: starting","commentaryStartOffset":0,`+
			`"commentaryEndOffset":0,"next":{"tool":"codex-status","arguments":{"cursor":0,"jobId":"`+id+`"}}}}}`)
		p := b.privateID(0)
		assert.Contains(t, b.codexGot(), `{"jsonrpc":"2.0","id":`+p+`,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"`+Secret+
			`","cwd":"/ws","sandbox":"read-only","config":{"model_reasoning_effort":"max","features.multi_agent":true,"agents.enabled":true},"developer-instructions":"`+Lead+`\ng"}}}`+"\n")

		b.send(ToolLine(11, "codex-status", Job(id, `,"cursor":0`)))
		assert.Empty(t, b.output(), "it waits for a change")
		b.says(Event(p, "task_started", "") + Event(p, "exec_command_begin", "") + Event(p, "exec_command_end", `"exit_code":0`))
		m := b.answers()["11"]
		assert.Equal(t, "running", m.field("state"))
		assert.Equal(t, "Codex: started", m.field("message"))
		assert.Equal(t, "T1", m.field("threadId"))
		assert.Equal(t, false, m.field("resultAvailable"))
		assert.NotContains(t, m.structured(), "next")
		assert.NotContains(t, m.structured(), "code")
		b.send(ToolLine(12, "codex-status", Job(id, `,"cursor":1`)))
		b.waits(200 * ms)
		assert.Empty(t, b.output())
		b.passes(100 * ms)
		m = b.answers()["12"]
		assert.Equal(t, "Codex: command finished (exit 0)", m.field("message"), "the latest text wins")

		b.says(commentary(p, "i", "item_started", "") + commentary(p, "i", "delta", "I loo"))
		assert.Equal(t, "I loo", b.ask("codex-commentary", Job(id, "")).field("text"))
		b.says(commentary(p, "i", "item_completed", "I look around."))
		m = b.ask("codex-commentary", Job(id, `,"offset":5`))
		assert.Equal(t, "k around.\n\n", m.field("text"))
		assert.Equal(t, map[string]any{"jobId": id, "state": "running", "latestStatus": "Codex: command finished (exit 0)", "requestedOffset": 5.0, "startOffset": 5.0,
			"nextOffset": 16.0, "endOffset": 16.0, "caughtUp": true, "commentaryComplete": false, "truncatedBefore": false, "text": "k around.\n\n"}, m.structured())
		m = b.ask("codex-result", Job(id, ""))
		assert.False(t, m.failed())
		assert.Equal(t, "codex-status", m.field("next").(map[string]any)["tool"])

		b.says(Native(p, "the answer"))
		assert.Empty(t, b.output(), "neither events nor answers of ours reach the client")
		m = b.status(id)
		assert.Equal(t, "completed", m.field("state"))
		assert.LessOrEqual(t, m.field("cursor"), 4.0)
		assert.Contains(t, m.text(), "codex-result")
		for range 3 { // a poll may be asked again
			m = b.ask("codex-result", Job(id, ""))
			assert.Equal(t, map[string]any{"jobId": id, "state": "completed", "threadId": "T1", "offset": 0.0, "nextOffset": 10.0, "endOffset": 10.0, "done": true,
				"resultTruncated": false, "text": "the answer"}, m.structured())
		}
		m = b.ask("codex-result", Job(id, `,"offset":11`))
		assert.True(t, m.failed())
		assert.Equal(t, map[string]any{"code": "result_offset_out_of_range", "jobId": id, "offset": 11.0}, m.structured())
		assert.Equal(t, "status_cursor_ahead", b.ask("codex-status", Job(id, `,"cursor":99`)).field("code"))
		assert.Equal(t, "job_not_found", b.ask("codex-status", Job("x", `,"cursor":0`)).field("code"))
		b.send(strings.Replace(CallLine, `"id":3`, `"id":`+p, 1))
		assert.Contains(t, b.output(), `"code":-32600`, "a reserved id")
		b.leave()
	})
	l.scenario("207 pages of code points", Settings{Times: jobTimes}, func(t testing.TB, b *Bridge) {
		id := b.start()
		b.says(Native(b.privateID(0), strings.Repeat("🦊", 32780)))
		m := b.ask("codex-result", Job(id, ""))
		assert.Equal(t, []any{32768.0, 32780.0, false}, []any{m.field("nextOffset"), m.field("endOffset"), m.field("done")})
		m = b.ask("codex-result", Job(id, `,"offset":32768`))
		assert.Equal(t, strings.Repeat("🦊", 12), m.field("text"))
		assert.Equal(t, true, m.field("done"))
		b.leave()
	})
	l.scenario("209 beside a blocking call", Settings{Times: jobTimes}, func(t testing.TB, b *Bridge) {
		b.start()
		b.send(TurnCall(3, `"t"`))
		b.says(Event(b.privateID(0), "task_started", "") + Event(3, "task_started", "") + Native(3, "three"))
		all := b.messages()
		assert.Equal(t, []string{"Codex: started"}, told(all))
		assert.Equal(t, "3", string(all[len(all)-1].ID))
		b.leave()
	})
	l.scenario("210 a cancelled poll", Settings{Times: jobTimes}, func(t testing.TB, b *Bridge) {
		id := b.start()
		b.send(ToolLine(11, "codex-status", Job(id, `,"cursor":0`)), CancelLine(11))
		b.says(Event(b.privateID(0), "task_started", ""))
		assert.Empty(t, b.output())
		assert.NotContains(t, b.codexGot(), "cancelled", "neither the poll nor the job")
		assert.Equal(t, "running", b.status(id).field("state"))
		b.leave()
	})
	l.scenario("a heartbeat", Settings{Times: Times{Hard: time.Hour, CancelGrace: ms, FlushStall: ms, WaitInterval: 2 * time.Second}, Stretch: 2}, func(t testing.TB, b *Bridge) {
		id := b.start()
		b.send(ToolLine(11, "codex-status", Job(id, `,"cursor":0`)))
		b.waits(1800 * ms)
		assert.Empty(t, b.output())
		b.passes(200 * ms)
		m := b.answers()["11"]
		assert.Regexp(t, `^Codex: still running; last activity [1-9][0-9]*s ago$`, m.field("message"))
		assert.EqualValues(t, 0, m.field("cursor"))
		b.leave()
	})
	l.inMemory("half a minute", func() {
		l.scenario("default wait", Settings{}, func(t testing.TB, b *Bridge) {
			id := b.start()
			b.send(ToolLine(11, "codex-status", Job(id, `,"cursor":0`)))
			b.passes(30 * time.Second)
			assert.Contains(t, b.answers(), "11")
			b.exits(0)
			b.output()
			b.ends(0)
		})
	})
}

func jobEnds(l *table) {
	complete := func(p string) string { return Event(p, "task_complete", `"last_agent_message":"FALLBACK"`) }
	aborted := func(p string) string { return Event(p, "turn_aborted", "") }
	tests := []struct {
		name           string
		play           func(b *Bridge, id, p string)
		state, message string
		log, noLog     string
	}{
		{"197 the last event stands in", func(b *Bridge, id, p string) { b.says(complete(p)); b.passes(80 * ms); b.says(Native(p, "late")) }, "completed", "Codex: completed", "", ""},
		{"198 aborted", func(b *Bridge, id, p string) { b.says(aborted(p)); b.passes(80 * ms) }, "failed", "turn_aborted", "", ""},
		{"199 aborted, whatever the answer", func(b *Bridge, id, p string) { b.says(aborted(p) + Native(p, "fine")) }, "failed", "turn_aborted", "", ""},
		{"201 aborted before the cancel", func(b *Bridge, id, p string) { b.says(aborted(p)); b.ask("codex-cancel", Job(id, "")) },
			"canceled", "Codex: canceled (confirmed by turn_aborted)", "", "NOT confirmed"},
		{"202 aborted after the cancel", func(b *Bridge, id, p string) {
			m := b.ask("codex-cancel", Job(id, ""))
			assert.Equal(b, "canceling", m.field("state"))
			assert.Equal(b, "Codex: canceling", m.field("message"))
			assert.Equal(b, m.field("cursor"), b.ask("codex-cancel", Job(id, "")).field("cursor"), "idempotent")
			b.says(aborted(p))
		}, "canceled", "Codex: canceled (confirmed by turn_aborted)", "", "NOT confirmed"},
		{"203 completed after the cancel", func(b *Bridge, id, p string) { b.ask("codex-cancel", Job(id, "")); b.says(complete(p)) },
			"canceled", "Codex: completed after cancellation was requested (task_complete; result discarded)", "", "NOT confirmed"},
		{"204 unacknowledged", func(b *Bridge, id, p string) { b.ask("codex-cancel", Job(id, "")); b.passes(100 * ms) },
			"canceled", "Codex: canceled (codex did not acknowledge within ", "NOT confirmed stopped", ""},
		{"204 answered after the cancel", func(b *Bridge, id, p string) { b.ask("codex-cancel", Job(id, "")); b.says(Native(p, "x")) }, "canceled", "Codex: canceled", "", "NOT confirmed"},
		{"128 idle", func(b *Bridge, id, p string) { b.passes(jobTimes.Idle) }, "failed", "Codex: request idle timeout (", "NOT confirmed stopped", ""},
		{"an error", func(b *Bridge, id, p string) {
			b.says(`{"jsonrpc":"2.0","id":` + p + `,"error":{"code":-32603,"message":"no such thing"}}` + "\n")
		}, "failed", "Codex: no such thing", "", ""},
		{"a failed turn", func(b *Bridge, id, p string) { b.says(FailedTurn(p, "out of credit")) }, "failed", "Codex: out of credit", "", ""},
		{"208 more than 10 MiB", func(b *Bridge, id, p string) {
			b.says(Native(p, strings.Repeat("x", proxy.MaxLine)))
		}, "failed", "10 MiB", "", ""},
		{"a question", func(b *Bridge, id, p string) {
			b.says(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"_meta":{"requestId":` + p + `}}}` + "\n")
			assert.Contains(b, b.codexGot(), `{"jsonrpc":"2.0","id":"q","error":{"code":-32601,`)
			assert.Contains(b, b.codexGot(), `"method":"notifications/cancelled","params":{"requestId":`+p)
		}, "failed", "unsupported interactive input", "", ""},
	}
	for _, tt := range tests {
		l.scenario(tt.name, Settings{Times: jobTimes}, func(t testing.TB, b *Bridge) {
			id := b.start()
			tt.play(b, id, b.privateID(0))
			assert.Empty(t, b.output(), "nothing of it reaches the client")
			m := b.status(id)
			assert.Equal(t, tt.state, m.field("state"))
			assert.Contains(t, m.field("message"), tt.message)
			assert.False(t, m.failed(), "a status of a failed job is no error")
			r := b.ask("codex-result", Job(id, ""))
			assert.Equal(t, tt.state != "completed", r.failed())
			if tt.state == "completed" {
				assert.Equal(t, "FALLBACK", r.field("text"))
			}
			assert.Equal(t, tt.state, b.status(id).field("state"), "final")
			if !b.real() {
				b.waits(time.Hour - time.Second)
				assert.Equal(t, tt.state, b.status(id).field("state"), "final")
				b.passes(time.Second)
				assert.Equal(t, "job_not_found", b.status(id).field("code"))
			}
			b.logged(tt.log)
			if tt.noLog != "" {
				assert.NotContains(t, b.stage.Log(), tt.noLog)
			}
			b.leave()
		})
	}
	l.scenario("196 a refused login", Settings{Times: jobTimes}, func(t testing.TB, b *Bridge) {
		id := b.start()
		b.says(Unauthorized(b.privateID(0)) + FailedTurn(b.privateID(0), Secret))
		m := b.status(id)
		assert.Equal(t, CodeLogin, m.field("code"))
		assert.Equal(t, "failed", m.field("state"))
		assert.Equal(t, CodeLogin, b.ask("codex-result", Job(id, "")).field("code"))
		b.leave()
	})
	l.scenario("a question that names only the thread", Settings{Times: jobTimes}, func(t testing.TB, b *Bridge) {
		id := b.start()
		q := `{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"threadId":"T1"}}` + "\n"
		b.says(Event(b.privateID(0), "task_started", "") + q)
		b.expect(q)
		assert.Equal(t, "failed", b.status(id).field("state"))
		b.send(`{"jsonrpc":"2.0","id":7,"result":{}}`)
		assert.Equal(t, 1, strings.Count(b.codexGot(), `"id":7`), "Codex gets one answer")
		b.leave()
	})
	l.scenario("200 aborted, at the end of the bridge", Settings{Times: jobTimes}, func(t testing.TB, b *Bridge) {
		id, other := b.start(), b.start()
		b.says(Event(b.privateID(0), "turn_aborted", ""))
		cursor := fmt.Sprintf(`,"cursor":%v`, b.status(id).field("cursor"))
		b.send(ToolLine(11, "codex-status", Job(id, cursor)), ToolLine(12, "codex-status", Job(other, `,"cursor":0`)))
		b.exits(0)
		out := b.answers()
		assert.Contains(t, out["11"].field("message"), "turn_aborted")
		assert.Equal(t, "Codex: bridge stopped: codex exited with code 0", out["12"].field("message"))
		b.ends(0)
	})
	l.scenario("4.12 the client goes away", Settings{Times: jobTimes}, func(t testing.TB, b *Bridge) {
		id := b.start()
		b.says(Event(b.privateID(0), "task_started", ""))
		b.leave()
		b.logged("client disconnected; cancelling background job " + id + " (state=running, thread_id=T1)")
		assert.Contains(t, b.codexGot(), "notifications/cancelled")
	})
}

func jobCommentary(l *table) {
	l.scenario("205 only what was said", Settings{Times: jobTimes}, func(t testing.TB, b *Bridge) {
		id := b.start()
		p := b.privateID(0)
		b.says(Event(p, "agent_reasoning", `"text":"`+Secret+`"`) + Event(p, "agent_message", `"phase":"final_answer","message":"`+Secret+`"`) +
			Event(p, "exec_command_begin", `"command":["`+Secret+`"]`) +
			commentary(p, "i", "item_completed", "a\r\x1b[31m\tb\nc\u2028\u202e\u2066d\u0085") + Event(p, "agent_message", `"phase":"commentary","message":"again"`))
		assert.Equal(t, "a[31m\tb\ncd\n\n", b.ask("codex-commentary", Job(id, "")).field("text"))
		b.leave()
	})
	l.scenario("205 of a Codex that does not stream", Settings{Times: jobTimes}, func(t testing.TB, b *Bridge) {
		id := b.start()
		b.says(Event(b.privateID(0), "agent_message", `"phase":"commentary","message":"hello"`))
		assert.Equal(t, "hello\n\n", b.ask("codex-commentary", Job(id, "")).field("text"))
		b.leave()
	})
	l.scenario("206 a bounded tail", Settings{Times: jobTimes, MaxCommentary: 64}, func(t testing.TB, b *Bridge) {
		id := b.start()
		letters := b.stage.MaxCommentary()/2 + 168 // of two bytes each, and two line feeds behind them
		end := float64(letters + 2)
		kept := b.stage.MaxCommentary()/2 - 1
		start := end - float64(kept+2)
		b.says(commentary(b.privateID(0), "i", "item_completed", strings.Repeat("é", letters)))
		m := b.ask("codex-commentary", Job(id, ""))
		assert.Equal(t, []any{0.0, start, end, true}, []any{m.field("requestedOffset"), m.field("startOffset"), m.field("endOffset"), m.field("truncatedBefore")})
		text := strings.Repeat("é", kept) + "\n\n"
		assert.Equal(t, firstRunes(text, 32768), m.field("text"))
		assert.Equal(t, true, b.status(id).field("commentaryTruncated"))
		m = b.ask("codex-commentary", Job(id, fmt.Sprintf(`,"offset":%.0f`, end+1)))
		assert.Equal(t, map[string]any{"code": "commentary_offset_out_of_range", "jobId": id, "requestedOffset": end + 1, "startOffset": start, "endOffset": end}, m.structured())
		b.logged(fmt.Sprintf("Codex job %s commentary exceeded %d bytes; retaining tail", id, b.stage.MaxCommentary()))
		b.leave()
	})
}

// firstRunes is a page of text.
func firstRunes(text string, n int) string {
	runes := []rune(text)
	return string(runes[:min(n, len(runes))])
}

func jobCapacity(l *table) {
	l.scenario("capacity", Settings{Times: jobTimes}, func(t testing.TB, b *Bridge) {
		for range 8 {
			b.start()
		}
		m := b.ask("codex-start", `{"prompt":"p","cwd":"/ws","sandbox":"read-only"}`)
		assert.True(t, m.failed())
		assert.Equal(t, map[string]any{"code": "capacity_exceeded", "activeJobs": 8.0, "retainedJobs": 8.0, "maxActiveJobs": 8.0, "maxRetainedJobs": 32.0}, m.structured())
		assert.Equal(t, 8, strings.Count(b.codexGot(), "tools/call"))
		b.leave()
	})
	l.inMemory("the pipe to a client holds 64 KiB, so that the answer is delivered before the cancel", func() {
		l.scenario("117 the answer to a start is cancelled", Settings{Times: jobTimes}, func(t testing.TB, b *Bridge) {
			b.stage.Pause()
			b.says(`{"method":"x"}` + "\n")
			b.says(`{"method":"y"}` + "\n")
			b.send(ToolLine(10, "codex-start", `{"prompt":"p","cwd":"/ws","sandbox":"read-only"}`))
			b.send(CancelLine(10))
			b.stage.Resume()
			b.expect(`{"method":"x"}`, `{"method":"y"}`)
			assert.Contains(t, b.codexGot(), `"method":"notifications/cancelled","params":{"requestId":`+b.privateID(0), "nobody knows of the job")
			b.leave()
		})
	})
	l.scenario("185 a poll's id is used again", Settings{Times: jobTimes}, func(t testing.TB, b *Bridge) {
		id := b.start()
		b.send(ToolLine(11, "codex-status", Job(id, `,"cursor":0`)), PingLine(11))
		m := b.answers()["11"]
		require.NotNil(t, m.Error)
		assert.Contains(t, m.problem(), "reused")
		b.ends(1)
	})
	l.scenario("115 116 arguments", Settings{Times: jobTimes}, func(t testing.TB, b *Bridge) {
		b.send(ToolLine(1, "codex-status", `{"jobId":"x","wait_ms":60001}`))
		assert.Contains(t, b.output(), `"issues":[{"argument":"cursor","problem":"is required"},{"argument":"wait_ms","problem":"must be an integer from 0 to 60000"}]`)
		b.send(ToolLine(1, "codex-commentary", `{"jobId":" ","offset":-1}`))
		assert.Contains(t, b.output(), `"issues":[{"argument":"jobId","problem":"must not be blank"},{"argument":"offset","problem":"must be a nonnegative integer"}]`)
		b.leave()
	})
}
