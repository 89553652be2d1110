package codex

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/relay"
)

// jobTimes are those of the job scenarios.
var jobTimes = Times{Idle: 2 * time.Second, Hard: 4 * time.Second, TerminalGrace: 80 * ms, CancelGrace: 100 * ms, FlushStall: time.Minute,
	StatusInterval: 1500 * ms, ProgressInterval: time.Second, WaitInterval: 10 * time.Second}

// start starts a job and returns its id.
func (b *testBridge) start(t *testing.T) string {
	t.Helper()
	m := b.ask("codex-start", `{"prompt":"`+secret+`","cwd":"/ws","sandbox":"workspace-write","goal":"g"}`)
	id, _ := m.field("jobId").(string)
	require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, id)
	return id
}

var privateJobID = regexp.MustCompile(`"mcp-agents/job/[^"]*"`)

// privateID is the id, as JSON, of the nth call that ran a job.
func (b *testBridge) privateID(n int) string {
	b.Helper()
	var all []string
	for line := range strings.Lines(b.codexGot()) {
		if id := privateJobID.FindString(line); id != "" && strings.Contains(line, "tools/call") {
			all = append(all, id)
		}
	}
	require.Greater(b, len(all), n)
	return all[n]
}

func on(id, more string) string { return `{"jobId":"` + id + `"` + more + `}` }

// status polls without waiting.
func (b *testBridge) status(id string) message {
	b.Helper()
	return b.ask("codex-status", on(id, `,"cursor":0,"wait_ms":0`))
}

func commentary(id, item, kind, text string) string {
	if kind == "delta" {
		return event(id, "agent_message_content_delta", fmt.Sprintf(`"item_id":%q,"delta":%s`, item, encode(text)))
	}
	return event(id, kind, fmt.Sprintf(`"item":{"type":"AgentMessage","id":%q,"phase":"commentary","content":[{"type":"Text","text":%s}]}`, item, encode(text)))
}

func TestJobLife(t *testing.T) {
	scenario(t, "195 107 B18", Config{Times: jobTimes}, func(t *testing.T, b *testBridge) {
		b.send(toolLine(10, "codex-start", `{"prompt":"`+secret+`","cwd":"/ws","sandbox":"read-only","model_reasoning_effort":"max","goal":"g","allow_subagents":true}`))
		out := b.output()
		id := regexp.MustCompile(`"jobId":"([^"]*)"`).FindStringSubmatch(out)[1]
		assert.Contains(t, out, `"structuredContent":{"jobId":"`+id+`","state":"starting","cursor":0,"message":"Codex: starting","commentaryStartOffset":0,`+
			`"commentaryEndOffset":0,"next":{"tool":"codex-status","arguments":{"cursor":0,"jobId":"`+id+`"}}}}}`)
		p := b.privateID(0)
		assert.Contains(t, b.codexGot(), `{"jsonrpc":"2.0","id":`+p+`,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"`+secret+
			`","cwd":"/ws","sandbox":"read-only","config":{"model_reasoning_effort":"max","features.multi_agent":true,"agents.enabled":true},"developer-instructions":"`+lead+`\ng"}}}`+"\n")

		b.send(toolLine(11, "codex-status", on(id, `,"cursor":0`)))
		assert.Empty(t, b.output(), "it waits for a change")
		b.says(event(p, "task_started", "") + event(p, "exec_command_begin", "") + event(p, "exec_command_end", `"exit_code":0`))
		m := b.answers()["11"]
		assert.Equal(t, "running", m.field("state"))
		assert.Equal(t, "Codex: started", m.field("message"))
		assert.Equal(t, "T1", m.field("threadId"))
		assert.Equal(t, false, m.field("resultAvailable"))
		assert.NotContains(t, m.Result.StructuredContent, "next")
		assert.NotContains(t, m.Result.StructuredContent, "code")
		b.send(toolLine(12, "codex-status", on(id, `,"cursor":1`)))
		pass(1499 * ms)
		assert.Empty(t, b.output())
		pass(ms)
		m = b.answers()["12"]
		assert.Equal(t, "Codex: command finished (exit 0)", m.field("message"), "the latest text wins")

		b.says(commentary(p, "i", "item_started", "") + commentary(p, "i", "delta", "I loo"))
		assert.Equal(t, "I loo", b.ask("codex-commentary", on(id, "")).field("text"))
		b.says(commentary(p, "i", "item_completed", "I look around."))
		m = b.ask("codex-commentary", on(id, `,"offset":5`))
		assert.Equal(t, "k around.\n\n", m.field("text"))
		assert.Equal(t, map[string]any{"jobId": id, "state": "running", "latestStatus": "Codex: command finished (exit 0)", "requestedOffset": 5.0, "startOffset": 5.0,
			"nextOffset": 16.0, "endOffset": 16.0, "caughtUp": true, "commentaryComplete": false, "truncatedBefore": false, "text": "k around.\n\n"}, m.Result.StructuredContent)
		m = b.ask("codex-result", on(id, ""))
		assert.False(t, m.Result.IsError)
		assert.Equal(t, "codex-status", m.field("next").(map[string]any)["tool"])

		b.says(native(p, "the answer"))
		assert.Empty(t, b.output(), "neither events nor answers of ours reach the client")
		m = b.status(id)
		assert.Equal(t, "completed", m.field("state"))
		assert.LessOrEqual(t, m.field("cursor"), 4.0)
		assert.Contains(t, m.Result.Content[0].Text, "codex-result")
		for range 3 { // B45
			m = b.ask("codex-result", on(id, ""))
			assert.Equal(t, map[string]any{"jobId": id, "state": "completed", "threadId": "T1", "offset": 0.0, "nextOffset": 10.0, "endOffset": 10.0, "done": true,
				"resultTruncated": false, "text": "the answer"}, m.Result.StructuredContent)
		}
		m = b.ask("codex-result", on(id, `,"offset":11`))
		assert.True(t, m.Result.IsError)
		assert.Equal(t, map[string]any{"code": "result_offset_out_of_range", "jobId": id, "offset": 11.0}, m.Result.StructuredContent)
		assert.Equal(t, "status_cursor_ahead", b.ask("codex-status", on(id, `,"cursor":99`)).field("code"))
		assert.Equal(t, "job_not_found", b.ask("codex-status", on("x", `,"cursor":0`)).field("code"))
		b.send(strings.Replace(callLine, `"id":3`, `"id":`+p, 1))
		assert.Contains(t, b.output(), `"code":-32600`, "a reserved id")
		b.leave()
	})
	scenario(t, "207 B17 pages of code points", Config{Times: jobTimes}, func(t *testing.T, b *testBridge) {
		id := b.start(t)
		b.says(native(b.privateID(0), strings.Repeat("🦊", 32780)))
		m := b.ask("codex-result", on(id, ""))
		assert.Equal(t, []any{32768.0, 32780.0, false}, []any{m.field("nextOffset"), m.field("endOffset"), m.field("done")})
		m = b.ask("codex-result", on(id, `,"offset":32768`))
		assert.Equal(t, strings.Repeat("🦊", 12), m.field("text"))
		assert.Equal(t, true, m.field("done"))
		b.leave()
	})
	scenario(t, "209 beside a blocking call", Config{Times: jobTimes}, func(t *testing.T, b *testBridge) {
		b.start(t)
		b.send(turnCall(3, `"t"`))
		b.says(event(b.privateID(0), "task_started", "") + event(3, "task_started", "") + native(3, "three"))
		all := b.messages()
		assert.Equal(t, []string{"Codex: started"}, told(all))
		assert.Equal(t, "3", string(all[len(all)-1].ID))
		b.leave()
	})
	scenario(t, "210 a cancelled poll", Config{Times: jobTimes}, func(t *testing.T, b *testBridge) {
		id := b.start(t)
		b.send(toolLine(11, "codex-status", on(id, `,"cursor":0`)), cancelLine(11))
		b.says(event(b.privateID(0), "task_started", ""))
		assert.Empty(t, b.output())
		assert.NotContains(t, b.codexGot(), "cancelled", "neither the poll nor the job")
		assert.Equal(t, "running", b.status(id).field("state"))
		b.leave()
	})
	scenario(t, "a heartbeat", Config{Times: Times{Hard: time.Hour, CancelGrace: ms, FlushStall: ms, WaitInterval: 10 * time.Second}}, func(t *testing.T, b *testBridge) {
		id := b.start(t)
		b.send(toolLine(11, "codex-status", on(id, `,"cursor":0`)))
		pass(10*time.Second - ms)
		assert.Empty(t, b.output())
		pass(ms)
		m := b.answers()["11"]
		assert.Equal(t, "Codex: still running; last activity 10s ago", m.field("message"))
		assert.EqualValues(t, 0, m.field("cursor"))
		b.leave()
	})
	scenario(t, "B18 default wait", Config{}, func(t *testing.T, b *testBridge) {
		id := b.start(t)
		b.send(toolLine(11, "codex-status", on(id, `,"cursor":0`)))
		pass(30 * time.Second)
		assert.Contains(t, b.answers(), "11")
		b.codexes[0].end(*exits(0), "")
		b.output()
		b.end(0)
	})
}

func TestJobEnds(t *testing.T) {
	complete := func(p string) string { return event(p, "task_complete", `"last_agent_message":"FALLBACK"`) }
	aborted := func(p string) string { return event(p, "turn_aborted", "") }
	tests := []struct {
		name           string
		play           func(b *testBridge, id, p string)
		state, message string
		log, noLog     string
	}{
		{"197 the last event stands in", func(b *testBridge, id, p string) { b.says(complete(p)); pass(80 * ms); b.says(native(p, "late")) }, "completed", "Codex: completed", "", ""},
		{"198 aborted", func(b *testBridge, id, p string) { b.says(aborted(p)); pass(80 * ms) }, "failed", "turn_aborted", "", ""},
		{"199 aborted, whatever the answer", func(b *testBridge, id, p string) { b.says(aborted(p) + native(p, "fine")) }, "failed", "turn_aborted", "", ""},
		{"201 aborted before the cancel", func(b *testBridge, id, p string) { b.says(aborted(p)); b.ask("codex-cancel", on(id, "")) },
			"canceled", "Codex: canceled (confirmed by turn_aborted)", "", "NOT confirmed"},
		{"202 aborted after the cancel", func(b *testBridge, id, p string) {
			m := b.ask("codex-cancel", on(id, ""))
			assert.Equal(b, "canceling", m.field("state"))
			assert.Equal(b, "Codex: canceling", m.field("message"))
			assert.Equal(b, m.field("cursor"), b.ask("codex-cancel", on(id, "")).field("cursor"), "idempotent")
			b.says(aborted(p))
		}, "canceled", "Codex: canceled (confirmed by turn_aborted)", "", "NOT confirmed"},
		{"203 completed after the cancel", func(b *testBridge, id, p string) { b.ask("codex-cancel", on(id, "")); b.says(complete(p)) },
			"canceled", "Codex: completed after cancellation was requested (task_complete; result discarded)", "", "NOT confirmed"},
		{"204 unacknowledged", func(b *testBridge, id, p string) { b.ask("codex-cancel", on(id, "")); pass(100 * ms) },
			"canceled", "Codex: canceled (codex did not acknowledge within 100ms)", "NOT confirmed stopped", ""},
		{"204 answered after the cancel", func(b *testBridge, id, p string) { b.ask("codex-cancel", on(id, "")); b.says(native(p, "x")) }, "canceled", "Codex: canceled", "", "NOT confirmed"},
		{"128 idle", func(b *testBridge, id, p string) { pass(2 * time.Second) }, "failed", "Codex: request idle timeout (2s)", "NOT confirmed stopped", ""},
		{"an error", func(b *testBridge, id, p string) {
			b.says(`{"jsonrpc":"2.0","id":` + p + `,"error":{"code":-32603,"message":"no such thing"}}` + "\n")
		}, "failed", "Codex: no such thing", "", ""},
		{"a failed turn", func(b *testBridge, id, p string) { b.says(failedTurn(p, "out of credit")) }, "failed", "Codex: out of credit", "", ""},
		{"208 more than 10 MiB", func(b *testBridge, id, p string) {
			go io.WriteString(b.codexes[0].stdout, native(p, strings.Repeat("x", relay.MaxLine)))
			pass(ms)
		}, "failed", "10 MiB", "", ""},
		{"B41 a question", func(b *testBridge, id, p string) {
			b.says(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"_meta":{"requestId":` + p + `}}}` + "\n")
			assert.Contains(b, b.codexGot(), `{"jsonrpc":"2.0","id":"q","error":{"code":-32601,`)
			assert.Contains(b, b.codexGot(), `"method":"notifications/cancelled","params":{"requestId":`+p)
		}, "failed", "unsupported interactive input", "", ""},
	}
	for _, tt := range tests {
		scenario(t, tt.name, Config{Times: jobTimes}, func(t *testing.T, b *testBridge) {
			id := b.start(t)
			tt.play(b, id, b.privateID(0))
			assert.Empty(t, b.output(), "nothing of it reaches the client")
			m := b.status(id)
			assert.Equal(t, tt.state, m.field("state"))
			assert.Contains(t, m.field("message"), tt.message)
			assert.False(t, m.Result.IsError, "a status of a failed job is no error")
			r := b.ask("codex-result", on(id, ""))
			assert.Equal(t, tt.state != "completed", r.Result.IsError)
			if tt.state == "completed" {
				assert.Equal(t, "FALLBACK", r.field("text"))
			}
			pass(time.Hour - time.Second)
			assert.Equal(t, tt.state, b.status(id).field("state"), "final")
			pass(time.Second)
			assert.Equal(t, "job_not_found", b.status(id).field("code"))
			assert.Contains(t, b.log.String(), tt.log)
			if tt.noLog != "" {
				assert.NotContains(t, b.log.String(), tt.noLog)
			}
			b.leave()
		})
	}
	scenario(t, "196 a refused login", Config{Times: jobTimes}, func(t *testing.T, b *testBridge) {
		id := b.start(t)
		b.says(unauthorized(b.privateID(0)) + failedTurn(b.privateID(0), secret))
		m := b.status(id)
		assert.Equal(t, codeLogin, m.field("code"))
		assert.Equal(t, "failed", m.field("state"))
		assert.Equal(t, codeLogin, b.ask("codex-result", on(id, "")).field("code"))
		b.leave()
	})
	scenario(t, "B41 a question that names only the thread", Config{Times: jobTimes}, func(t *testing.T, b *testBridge) {
		id := b.start(t)
		q := `{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"threadId":"T1"}}` + "\n"
		b.says(event(b.privateID(0), "task_started", "") + q)
		b.expect(q)
		assert.Equal(t, "failed", b.status(id).field("state"))
		b.send(`{"jsonrpc":"2.0","id":7,"result":{}}`)
		assert.Equal(t, 1, strings.Count(b.codexGot(), `"id":7`), "Codex gets one answer")
		b.leave()
	})
	scenario(t, "200 aborted, at the end of the bridge", Config{Times: jobTimes}, func(t *testing.T, b *testBridge) {
		id, other := b.start(t), b.start(t)
		b.says(event(b.privateID(0), "turn_aborted", ""))
		cursor := fmt.Sprintf(`,"cursor":%v`, b.status(id).field("cursor"))
		b.send(toolLine(11, "codex-status", on(id, cursor)), toolLine(12, "codex-status", on(other, `,"cursor":0`)))
		b.codexes[0].end(*exits(0), "")
		out := b.answers()
		assert.Contains(t, out["11"].field("message"), "turn_aborted")
		assert.Equal(t, "Codex: bridge stopped: codex exited with code 0", out["12"].field("message"))
		b.end(0)
	})
	scenario(t, "4.12 the client goes away", Config{Times: jobTimes}, func(t *testing.T, b *testBridge) {
		id := b.start(t)
		b.says(event(b.privateID(0), "task_started", ""))
		b.leave()
		assert.Contains(t, b.log.String(), "client disconnected; cancelling background job "+id+" (state=running, thread_id=T1)")
		assert.Contains(t, b.codexGot(), "notifications/cancelled")
	})
}

func TestJobCommentary(t *testing.T) {
	scenario(t, "205 only what was said", Config{Times: jobTimes}, func(t *testing.T, b *testBridge) {
		id := b.start(t)
		p := b.privateID(0)
		b.says(event(p, "agent_reasoning", `"text":"`+secret+`"`) + event(p, "agent_message", `"phase":"final_answer","message":"`+secret+`"`) +
			event(p, "exec_command_begin", `"command":["`+secret+`"]`) +
			commentary(p, "i", "item_completed", "a\r\x1b[31m\tb\nc\u2028\u202e\u2066d\u0085") + event(p, "agent_message", `"phase":"commentary","message":"again"`))
		assert.Equal(t, "a[31m\tb\ncd\n\n", b.ask("codex-commentary", on(id, "")).field("text"))
		b.leave()
	})
	scenario(t, "205 of a Codex that does not stream", Config{Times: jobTimes}, func(t *testing.T, b *testBridge) {
		id := b.start(t)
		b.says(event(b.privateID(0), "agent_message", `"phase":"commentary","message":"hello"`))
		assert.Equal(t, "hello\n\n", b.ask("codex-commentary", on(id, "")).field("text"))
		b.leave()
	})
	scenario(t, "206 a bounded tail", Config{Times: jobTimes, MaxCommentary: 64}, func(t *testing.T, b *testBridge) {
		id := b.start(t)
		b.says(commentary(b.privateID(0), "i", "item_completed", strings.Repeat("é", 200)))
		m := b.ask("codex-commentary", on(id, ""))
		assert.Equal(t, []any{0.0, 169.0, 202.0, true}, []any{m.field("requestedOffset"), m.field("startOffset"), m.field("endOffset"), m.field("truncatedBefore")})
		assert.Equal(t, strings.Repeat("é", 31)+"\n\n", m.field("text"))
		assert.Equal(t, true, b.status(id).field("commentaryTruncated"))
		m = b.ask("codex-commentary", on(id, `,"offset":203`))
		assert.Equal(t, map[string]any{"code": "commentary_offset_out_of_range", "jobId": id, "requestedOffset": 203.0, "startOffset": 169.0, "endOffset": 202.0}, m.Result.StructuredContent)
		assert.Contains(t, b.log.String(), "Codex job "+id+" commentary exceeded 64 bytes; retaining tail")
		b.leave()
	})
}

func TestJobCapacityAndLaunch(t *testing.T) {
	scenario(t, "capacity", Config{Times: jobTimes}, func(t *testing.T, b *testBridge) {
		for range 8 {
			b.start(t)
		}
		m := b.ask("codex-start", `{"prompt":"p","cwd":"/ws","sandbox":"read-only"}`)
		assert.True(t, m.Result.IsError)
		assert.Equal(t, map[string]any{"code": "capacity_exceeded", "activeJobs": 8.0, "retainedJobs": 8.0, "maxActiveJobs": 8.0, "maxRetainedJobs": 32.0}, m.Result.StructuredContent)
		assert.Equal(t, 8, strings.Count(b.codexGot(), "tools/call"))
		b.leave()
	})
	scenario(t, "117 B18 the answer to a start is cancelled", Config{Times: jobTimes}, func(t *testing.T, b *testBridge) {
		b.pause()
		b.says(`{"method":"x"}` + "\n")
		b.says(`{"method":"y"}` + "\n")
		b.send(toolLine(10, "codex-start", `{"prompt":"p","cwd":"/ws","sandbox":"read-only"}`))
		b.send(cancelLine(10))
		b.resume()
		b.expect(`{"method":"x"}`, `{"method":"y"}`)
		assert.Contains(t, b.codexGot(), `"method":"notifications/cancelled","params":{"requestId":`+b.privateID(0), "nobody knows of the job")
		b.leave()
	})
	scenario(t, "185 a poll's id is used again", Config{Times: jobTimes}, func(t *testing.T, b *testBridge) {
		id := b.start(t)
		b.send(toolLine(11, "codex-status", on(id, `,"cursor":0`)), pingLine(11))
		m := b.answers()["11"]
		require.NotNil(t, m.Error)
		assert.Contains(t, m.Error.Message, "reused")
		b.end(1)
	})
	t.Run("B18 a job while Codex cannot be started", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := startBridge(t, Config{Times: jobTimes}, launched{err: errNoEngine}, launched{err: errNoEngine}, launched{codex: &fakeCodex{script: handshakeSteps()}})
			b.read()
			b.send(initializeLine)
			b.output()
			id := b.start(t)
			m := b.status(id)
			assert.Equal(t, "failed", m.field("state"))
			assert.Contains(t, m.field("message"), "no container engine answers")
			id = b.start(t) // tries again
			b.says(native(b.privateID(0), "worked"))
			assert.Equal(t, "worked", b.ask("codex-result", on(id, "")).field("text"))
			b.leave()
		})
	})
	t.Run("210 a job is cancelled while Codex starts", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			gate := make(chan struct{})
			codex := &fakeCodex{script: handshakeSteps()}
			b := startBridge(t, Config{Times: jobTimes}, launched{codex: codex, gate: gate})
			b.read()
			b.send(initializeLine)
			id := b.start(t)
			assert.Equal(t, "canceled", b.ask("codex-cancel", on(id, "")).field("state"))
			close(gate)
			b.output()
			assert.NotContains(t, b.codexGot(), "tools/call")
			b.leave()
		})
	})
	scenario(t, "115 116 arguments", Config{Times: jobTimes}, func(t *testing.T, b *testBridge) {
		b.send(toolLine(1, "codex-status", `{"jobId":"x","wait_ms":60001}`))
		assert.Contains(t, b.output(), `"issues":[{"argument":"cursor","problem":"is required"},{"argument":"wait_ms","problem":"must be an integer from 0 to 60000"}]`)
		b.send(toolLine(1, "codex-commentary", `{"jobId":" ","offset":-1}`))
		assert.Contains(t, b.output(), `"issues":[{"argument":"jobId","problem":"must not be blank"},{"argument":"offset","problem":"must be a nonnegative integer"}]`)
		b.leave()
	})
}
