package codex

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProgress(t *testing.T) {
	cfg := Config{Times: quick}
	scenario(t, "164 own events renew, the token is the caller's", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, `"tok"`), turnCall(4, ""))
		for range 6 {
			pass(200 * ms)
			b.says(event(3, "exec_command_begin", `"call_id":"c"`) + event(4, "exec_command_begin", `"call_id":"d"`))
		}
		out := b.messages()
		require.NotEmpty(t, told(out))
		for _, m := range out {
			assert.Nil(t, m.Error)
			if m.Method == "notifications/progress" {
				assert.Equal(t, `"tok"`, string(m.Params.ProgressToken))
			}
		}
		b.leave()
	})
	for token, want := range map[string]string{`"a"`: `"a"`, `""`: `""`, "0": "0", `"0"`: `"0"`, "12345678901234567890": "12345678901234567890", "1.50": "1.50",
		"null": "", `{"a":1}`: "", "[1]": "", "true": "", "1e999": ""} {
		scenario(t, "165 B19 token "+token, cfg, func(t *testing.T, b *testBridge) {
			b.send(turnCall(3, token))
			b.says(event(3, "task_started", ""))
			for _, m := range b.messages() {
				if m.Method == "notifications/progress" {
					assert.Equal(t, want, string(m.Params.ProgressToken))
					want = "seen"
				}
			}
			assert.Contains(t, []string{"seen", ""}, want)
			b.leave()
		})
	}
	times := quick
	times.ProgressInterval = 80 * ms
	scenario(t, "167 B44 the first and the latest", Config{Times: times}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, "1"))
		b.says(event(3, "task_started", "") + event(3, "exec_command_begin", "") + event(3, "web_search_begin", "") +
			strings.Repeat(event(3, "agent_reasoning_delta", `"delta":"`+secret+`"`), 100) + event(3, "web_search_end", ""))
		assert.Equal(t, []string{"Codex: started"}, told(b.messages()))
		pass(80 * ms)
		out := b.messages()
		assert.Equal(t, []string{"Codex: web search finished"}, told(out))
		assert.Equal(t, 2, out[0].Params.Progress)
		b.says(event(3, "web_search_end", ""))
		pass(100 * ms)
		assert.Empty(t, told(b.messages()), "a repetition is not told")
		b.leave()
	})
	times = Times{Idle: 1250 * ms, Hard: time.Minute, TerminalGrace: 80 * ms, CancelGrace: 100 * ms, FlushStall: time.Minute, ProgressInterval: 20 * ms, WaitInterval: 250 * ms}
	scenario(t, "168 silence", Config{Times: times}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, "1"))
		pass(1249 * ms)
		texts := told(b.messages())
		assert.Equal(t, []string{"Codex: still running; last activity 0s ago", "Codex: still running; last activity 0s ago",
			"Codex: still running; last activity 0s ago", "Codex: still running; last activity 1s ago"}, texts)
		pass(ms)
		assert.Contains(t, b.answers()["3"].Error.Message, "idle timeout")
		b.leave()
	})
	scenario(t, "168 a status right after a notice", Config{Times: times}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, "1"))
		pass(250 * ms)
		b.says(event(3, "task_started", ""))
		assert.Equal(t, []string{"Codex: still running; last activity 0s ago", "Codex: started"}, told(b.messages()))
		b.leave()
	})
	scenario(t, "169 inside a half frame", Config{Times: times}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, "1"))
		b.says(`{"method":"ha`)
		pass(1100 * ms)
		assert.Empty(t, b.output())
		b.says("lf\"}\n")
		b.expect(`{"method":"half"}`, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":4,"message":"Codex: still running; last activity 1s ago"}}`)
		b.leave()
	})
	scenario(t, "B20 notices come often enough", Config{}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, "1"))
		pass(130 * time.Second)
		assert.Len(t, told(b.messages()), 13)
		b.leave()
	})
}

func TestProgressEnds(t *testing.T) {
	times := quick
	times.ProgressInterval, times.WaitInterval = 20*ms, 30*ms
	after := func(t *testing.T, b *testBridge) {
		b.says(event(3, "exec_command_begin", ""))
		pass(200 * ms)
		assert.Empty(t, told(b.messages()))
	}
	scenario(t, "176 with the answer", Config{Times: times}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, "1"))
		b.says(event(3, "task_started", "") + event(3, "web_search_begin", "") + native(3, "x"))
		assert.Equal(t, []string{"Codex: started"}, told(b.messages()))
		after(t, b)
		b.leave()
	})
	scenario(t, "177 with the turn", Config{Times: times}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, "1"))
		b.says(event(3, "task_started", "") + event(3, "task_complete", ""))
		b.output()
		pass(70 * ms)
		assert.Empty(t, b.output())
		pass(20 * ms)
		b.answers()
		after(t, b)
		b.leave()
	})
	scenario(t, "188 with a cancel", Config{Times: times}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, "1"))
		b.says(event(3, "task_started", "") + event(3, "web_search_begin", ""))
		b.output()
		b.send(cancelLine(3))
		after(t, b)
		b.leave()
	})
	scenario(t, "B19 one waits for a client that does not read", Config{Times: times}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, "1"))
		b.pause()
		b.says(`{"method":"first"}` + "\n")
		for range 50 {
			b.says(event(3, "exec_command_begin", "") + event(3, "exec_command_end", ""))
			pass(25 * ms)
		}
		b.says(native(3, "x"))
		b.resume()
		all := b.messages()
		last := len(all) - 1
		assert.Equal(t, "3", string(all[last].ID), "the answer is the last line")
		assert.Len(t, told(all), 1, "and the client reads one message of the past")
		b.leave()
	})
}

func TestProgressTexts(t *testing.T) {
	item := func(phase, id, text string) string {
		return fmt.Sprintf(`"item":{"type":"AgentMessage","id":%q,"phase":%q,"content":[{"type":"Text","text":%q}]}`, id, phase, text)
	}
	steps := []struct{ kind, fields, want string }{
		{"task_started", "", "started"},
		{"exec_command_begin", `"command":["` + secret + `"]`, "running a command"},
		{"exec_command_end", `"exit_code":7,"stdout":"` + secret + `"`, "command finished (exit 7)"},
		{"exec_command_end", `"exit_code":"x"`, "command finished"},
		{"plan_update", `"plan":[{"step":"one","status":"completed"},{"step":"two","status":"in_progress"}]`, "working on: two"},
		{"plan_update", `"plan":[{"step":"` + secret + `","status":"pending"}]`, ""},
		{"patch_apply_begin", `"changes":{"/a/` + secret + `":{},"/b":{}}`, "applying changes to 2 file(s)"},
		{"patch_apply_begin", "", "applying changes"},
		{"patch_apply_end", `"success":true`, "changes applied"},
		{"patch_apply_end", `"success":false,"stderr":"` + secret + `"`, "change application failed"},
		{"mcp_tool_call_begin", `"invocation":{"server":"s","tool":"t","arguments":{"a":"` + secret + `"}}`, "calling s/t"},
		{"mcp_tool_call_end", `"invocation":{"server":"s","tool":"t"}`, "finished calling s/t"},
		{"mcp_tool_call_begin", "", "calling an MCP tool"},
		{"mcp_tool_call_end", "", "finished calling an MCP tool"},
		{"web_search_begin", `"query":"` + secret + `"`, "searching the web"}, {"web_search_end", "", "web search finished"},
		{"view_image_tool_call", `"path":"` + secret + `"`, "inspecting an image"},
		{"image_generation_begin", "", "generating an image"}, {"image_generation_end", "", "image generation finished"},
		{"sub_agent_activity", "", "subagent activity"},
		{"collab_agent_spawn_begin", `"prompt":"` + secret + `"`, "starting a subagent"}, {"collab_agent_spawn_end", "", "subagent started"},
		{"collab_agent_interaction_begin", "", "coordinating with a subagent"}, {"collab_agent_interaction_end", "", "subagent coordination finished"},
		{"collab_waiting_begin", "", "waiting for a subagent"}, {"collab_waiting_end", "", "subagent wait finished"},
		{"collab_resume_begin", "", "resuming a subagent"}, {"collab_resume_end", "", "resuming after subagent work"},
		{"collab_close_begin", "", "closing a subagent"}, {"collab_close_end", "", "subagent closed"},
		{"item_started", item("commentary", "i", ""), ""},
		{"agent_message_content_delta", `"item_id":"i","delta":"I look\u0007 at\n\nthe  tests"`, "I look at the tests"},
		{"agent_message_content_delta", `"item_id":"other","delta":"` + secret + `"`, ""},
		{"item_completed", item("commentary", "i", "I look at the tests now"), "I look at the tests now"},
		{"agent_message", `"phase":"commentary","message":"` + strings.Repeat("é", 300) + `"`, strings.Repeat("é", 193)},
		{"agent_message", `"phase":"final_answer","message":"` + secret + `"`, ""},
		{"agent_message", `"phase":null,"message":"` + secret + `"`, ""},
		{"item_completed", item("final_answer", "f", secret), ""},
		{"item_completed", `"item":{"type":"agentMessage","phase":"commentary","content":[{"type":"Text","text":"` + secret + `"}]}`, ""},
		{"agent_reasoning", `"text":"` + secret + `"`, ""}, {"raw_response_item", `"item":{"x":"` + secret + `"}`, ""}, {"unheard_of", `"message":"` + secret + `"`, ""},
	}
	times := quick
	times.Idle, times.ProgressInterval, times.Hard = 0, ms, time.Hour
	scenario(t, "166 only the list is told", Config{Times: times}, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, "1"))
		count := 0
		for _, s := range steps {
			pass(5 * ms)
			b.says(event(3, s.kind, s.fields))
			var got []string
			for _, m := range b.messages() {
				if m.Method == "notifications/progress" {
					got = append(got, m.Params.Message)
					assert.Greater(t, m.Params.Progress, count)
					count = m.Params.Progress
				}
			}
			if s.want == "" {
				assert.Empty(t, got, s.kind)
				continue
			}
			assert.Equal(t, []string{"Codex: " + s.want}, got, s.kind)
			assert.LessOrEqual(t, utf8.RuneCountInString(got[0]), 200)
			assert.NotContains(t, got[0], secret)
		}
		b.leave()
	})
}
