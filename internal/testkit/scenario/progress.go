package scenario

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func progress(l *table) {
	cfg := Settings{Times: quick}
	l.scenario("164 own events renew, the token is the caller's", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, `"tok"`), TurnCall(4, ""))
		for range 4 {
			b.waits(200 * ms)
			b.says(Event(3, "exec_command_begin", `"call_id":"c"`) + Event(4, "exec_command_begin", `"call_id":"d"`))
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
	l.scenario("165 tokens are strings and numbers", cfg, func(t testing.TB, b *Bridge) {
		for i, token := range []struct {
			given string
			valid bool
		}{{`"a"`, true}, {`""`, true}, {"0", true}, {`"0"`, true}, {"12345678901234567890", true}, {"1.50", true},
			{"null", false}, {`{"a":1}`, false}, {"[1]", false}, {"true", false}, {"1e999", false}} {
			id := 10 + i
			b.send(TurnCall(id, token.given))
			b.says(Event(id, "task_started", ""))
			var used []string
			for _, m := range b.messages() {
				if m.Method == "notifications/progress" {
					used = append(used, string(m.Params.ProgressToken))
				}
			}
			if token.valid {
				assert.Equal(t, []string{token.given}, used)
			} else {
				assert.Empty(t, used, token.given)
			}
			b.says(Native(id, "x"))
			b.output()
		}
		b.leave()
	})
	times := quick
	times.ProgressInterval = 80 * ms
	l.scenario("167 the first and the latest", Settings{Times: times}, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, "1"))
		b.says(Event(3, "task_started", "") + Event(3, "exec_command_begin", "") + Event(3, "web_search_begin", "") +
			strings.Repeat(Event(3, "agent_reasoning_delta", `"delta":"`+Secret+`"`), 100) + Event(3, "web_search_end", ""))
		assert.Equal(t, []string{"Codex: started"}, told(b.messages()))
		b.passes(80 * ms)
		out := b.messages()
		assert.Equal(t, []string{"Codex: web search finished"}, told(out))
		assert.Equal(t, 2, out[0].Params.Progress)
		b.says(Event(3, "web_search_end", ""))
		b.passes(100 * ms)
		assert.Empty(t, told(b.messages()), "a repetition is not told")
		b.leave()
	})
	times = Times{Idle: 1250 * ms, Hard: time.Minute, TerminalGrace: 80 * ms, CancelGrace: 100 * ms, FlushStall: time.Minute, ProgressInterval: 20 * ms, WaitInterval: 250 * ms}
	silent := Settings{Times: times, Stretch: 4}
	const notice = `^Codex: still running; last activity [0-9]+s ago$`
	l.scenario("168 silence", silent, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, "1"))
		b.waits(1150 * ms)
		texts := told(b.messages())
		require.Len(t, texts, 4)
		for i, text := range texts {
			assert.Regexp(t, notice, text)
			if !b.real() {
				assert.Contains(t, text, fmt.Sprintf("activity %ds ago", i/3))
			}
		}
		b.passes(100 * ms)
		assert.Contains(t, b.answers()["3"].problem(), "idle timeout", "a notice is no activity")
		b.leave()
	})
	l.scenario("168 a status right after a notice", silent, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, "1"))
		b.passes(250 * ms)
		b.says(Event(3, "task_started", ""))
		texts := told(b.messages())
		require.Len(t, texts, 2)
		assert.Regexp(t, notice, texts[0])
		assert.Equal(t, "Codex: started", texts[1])
		b.leave()
	})
	l.scenario("169 inside a half frame", silent, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, "1"))
		b.says(`{"method":"ha`)
		b.waits(1100 * ms)
		assert.Empty(t, b.output())
		b.says("lf\"}\n")
		out := b.messages()
		require.Len(t, out, 2, "one notice waited")
		assert.Equal(t, "half", out[0].Method)
		assert.Equal(t, 4, out[1].Params.Progress, "the latest")
		assert.Regexp(t, notice, out[1].Params.Message)
		b.leave()
	})
	l.inMemory("two minutes", func() {
		l.scenario("notices come often enough", Settings{}, func(t testing.TB, b *Bridge) {
			b.send(TurnCall(3, "1"))
			b.passes(130 * time.Second)
			assert.Len(t, told(b.messages()), 13)
			b.leave()
		})
	})
}

func progressEnds(l *table) {
	times := quick
	times.ProgressInterval, times.WaitInterval = 20*ms, 30*ms
	after := func(t testing.TB, b *Bridge) {
		b.says(Event(3, "exec_command_begin", ""))
		b.passes(200 * ms)
		assert.Empty(t, told(b.messages()))
	}
	l.scenario("176 with the answer", Settings{Times: times}, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, "1"))
		b.says(Event(3, "task_started", "") + Event(3, "web_search_begin", "") + Native(3, "x"))
		assert.Equal(t, []string{"Codex: started"}, told(b.messages()))
		after(t, b)
		b.leave()
	})
	l.scenario("177 with the turn", Settings{Times: times}, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, "1"))
		b.says(Event(3, "task_started", "") + Event(3, "task_complete", ""))
		b.output()
		b.waits(50 * ms)
		assert.Empty(t, b.output())
		b.passes(30 * ms)
		b.answers()
		after(t, b)
		b.leave()
	})
	l.scenario("188 with a cancel", Settings{Times: times}, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, "1"))
		b.says(Event(3, "task_started", "") + Event(3, "web_search_begin", ""))
		b.output()
		b.send(CancelLine(3))
		b.output() // what crossed the cancel
		after(t, b)
		b.leave()
	})
	l.inMemory("the pipe to a client holds 64 KiB", func() {
		l.scenario("one waits for a client that does not read", Settings{Times: times}, func(t testing.TB, b *Bridge) {
			b.send(TurnCall(3, "1"))
			b.stage.Pause()
			b.says(`{"method":"first"}` + "\n")
			for range 50 {
				b.says(Event(3, "exec_command_begin", "") + Event(3, "exec_command_end", ""))
				b.passes(25 * ms)
			}
			b.says(Native(3, "x"))
			b.stage.Resume()
			all := b.messages()
			last := len(all) - 1
			assert.Equal(t, "3", string(all[last].ID), "the answer is the last line")
			assert.Len(t, told(all), 1, "and the client reads one message of the past")
			b.leave()
		})
	})
}

func progressTexts(l *table) {
	item := func(phase, id, text string) string {
		return fmt.Sprintf(`"item":{"type":"AgentMessage","id":%q,"phase":%q,"content":[{"type":"Text","text":%q}]}`, id, phase, text)
	}
	steps := []struct{ kind, fields, want string }{
		{"task_started", "", "started"},
		{"exec_command_begin", `"command":["` + Secret + `"]`, "running a command"},
		{"exec_command_end", `"exit_code":7,"stdout":"` + Secret + `"`, "command finished (exit 7)"},
		{"exec_command_end", `"exit_code":"x"`, "command finished"},
		{"plan_update", `"plan":[{"step":"one","status":"completed"},{"step":"two","status":"in_progress"}]`, "working on: two"},
		{"plan_update", `"plan":[{"step":"` + Secret + `","status":"pending"}]`, ""},
		{"patch_apply_begin", `"changes":{"/a/` + Secret + `":{},"/b":{}}`, "applying changes to 2 file(s)"},
		{"patch_apply_begin", "", "applying changes"},
		{"patch_apply_end", `"success":true`, "changes applied"},
		{"patch_apply_end", `"success":false,"stderr":"` + Secret + `"`, "change application failed"},
		{"mcp_tool_call_begin", `"invocation":{"server":"s","tool":"t","arguments":{"a":"` + Secret + `"}}`, "calling s/t"},
		{"mcp_tool_call_end", `"invocation":{"server":"s","tool":"t"}`, "finished calling s/t"},
		{"mcp_tool_call_begin", "", "calling an MCP tool"},
		{"mcp_tool_call_end", "", "finished calling an MCP tool"},
		{"web_search_begin", `"query":"` + Secret + `"`, "searching the web"}, {"web_search_end", "", "web search finished"},
		{"view_image_tool_call", `"path":"` + Secret + `"`, "inspecting an image"},
		{"image_generation_begin", "", "generating an image"}, {"image_generation_end", "", "image generation finished"},
		{"sub_agent_activity", "", "subagent activity"},
		{"collab_agent_spawn_begin", `"prompt":"` + Secret + `"`, "starting a subagent"}, {"collab_agent_spawn_end", "", "subagent started"},
		{"collab_agent_interaction_begin", "", "coordinating with a subagent"}, {"collab_agent_interaction_end", "", "subagent coordination finished"},
		{"collab_waiting_begin", "", "waiting for a subagent"}, {"collab_waiting_end", "", "subagent wait finished"},
		{"collab_resume_begin", "", "resuming a subagent"}, {"collab_resume_end", "", "resuming after subagent work"},
		{"collab_close_begin", "", "closing a subagent"}, {"collab_close_end", "", "subagent closed"},
		{"item_started", item("commentary", "i", ""), ""},
		{"agent_message_content_delta", `"item_id":"i","delta":"I look\u0007 at\n\nthe  tests"`, "I look at the tests"},
		{"agent_message_content_delta", `"item_id":"other","delta":"` + Secret + `"`, ""},
		{"item_completed", item("commentary", "i", "I look at the tests now"), "I look at the tests now"},
		{"agent_message", `"phase":"commentary","message":"` + strings.Repeat("é", 300) + `"`, strings.Repeat("é", 193)},
		{"agent_message", `"phase":"final_answer","message":"` + Secret + `"`, ""},
		{"agent_message", `"phase":null,"message":"` + Secret + `"`, ""},
		{"item_completed", item("final_answer", "f", Secret), ""},
		{"item_completed", `"item":{"type":"agentMessage","phase":"commentary","content":[{"type":"Text","text":"` + Secret + `"}]}`, ""},
		{"agent_reasoning", `"text":"` + Secret + `"`, ""}, {"raw_response_item", `"item":{"x":"` + Secret + `"}`, ""}, {"unheard_of", `"message":"` + Secret + `"`, ""},
	}
	times := quick
	times.Idle, times.ProgressInterval, times.Hard = 0, ms, time.Hour
	l.scenario("166 only the list is told", Settings{Times: times}, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, "1"))
		count := 0
		for _, s := range steps {
			b.waits(5 * ms)
			b.says(Event(3, s.kind, s.fields))
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
			assert.NotContains(t, got[0], Secret)
		}
		b.leave()
	})
}
