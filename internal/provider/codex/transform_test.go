package codex

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const lead = `Persistent objective for this thread. Pursue it across turns unless it is superseded:`

func TestTransform(t *testing.T) {
	const base = `"prompt":"p","cwd":"/ws","sandbox":"read-only"`
	tests := []struct {
		name, tool string
		server     transform
		in, want   string // arguments; the same text means the same bytes
	}{
		{"91 reply without goal", "codex-reply", transform{}, `{ "prompt" : "héllo \u00e9 \ud83d\ude00","threadId":"t" }`, `{ "prompt" : "héllo \u00e9 \ud83d\ude00","threadId":"t" }`},
		{"92 96 codex without selectors", "codex", transform{}, `{ ` + base + ` , "model" : "gpt-5.6-sol"}`, `{ ` + base + ` , "model" : "gpt-5.6-sol"}`},
		{"93 Sol and medium", "codex", transform{}, `{` + base + `,"model":"gpt-5.6-sol","model_reasoning_effort":"medium"}`,
			`{` + base + `,"model":"gpt-5.6-sol","config":{"model_reasoning_effort":"medium"}}`},
		{"94 Terra and high", "codex", transform{}, `{"model_reasoning_effort":"high",` + base + `,"model":"gpt-5.6-terra"}`,
			`{` + base + `,"model":"gpt-5.6-terra","config":{"model_reasoning_effort":"high"}}`},
		{"95 max alone", "codex", transform{}, `{` + base + `,"model_reasoning_effort":"max"}`, `{` + base + `,"config":{"model_reasoning_effort":"max"}}`},
		{"97 max and goal", "codex", transform{}, `{` + base + `,"goal":" win ","model_reasoning_effort":"max"}`,
			`{` + base + `,"config":{"model_reasoning_effort":"max"},"developer-instructions":"` + lead + `\nwin"}`},
		{"98 103 goal of several words", "codex", transform{}, `{` + base + `,"goal":"keep <the> \"API\"\nstable"}`,
			`{` + base + `,"developer-instructions":"` + lead + `\nkeep <the> \"API\"\nstable"}`},
		{"99 server goal", "codex", transform{goal: "srv"}, `{` + base + `}`, `{` + base + `,"developer-instructions":"` + lead + `\nsrv"}`},
		{"100 call overrides server", "codex", transform{goal: "srv"}, `{` + base + `,"goal":"call"}`, `{` + base + `,"developer-instructions":"` + lead + `\ncall"}`},
		{"101 blank suppresses", "codex", transform{goal: "srv"}, `{` + base + `,"goal":" \n"}`, `{` + base + `}`},
		{"101 blank server goal is none", "codex", transform{goal: "  "}, `{` + base + `}`, `{` + base + `}`},
		{"102 reply goal", "codex-reply", transform{}, `{"threadId":"t", "prompt" : "big \u00e9 é","goal":"g"}`,
			`{"threadId":"t","prompt" : "Reminder — standing objective for this thread: g\n\nbig \u00e9 é"}`},
		{"102 reply with server goal", "codex-reply", transform{goal: "srv"}, `{"prompt":"","threadId":"t"}`,
			`{"prompt":"Reminder — standing objective for this thread: srv\n\n","threadId":"t"}`},
		{"101 reply blank suppresses", "codex-reply", transform{goal: "srv"}, `{"prompt":"p","threadId":"t","goal":""}`, `{"prompt":"p","threadId":"t"}`},
		{"104 subagents", "codex", transform{agents: true}, `{` + base + `,"allow_subagents":true}`,
			`{` + base + `,"config":{"features.multi_agent":true,"agents.enabled":true}}`},
		{"105 no subagents", "codex", transform{agents: true}, `{"allow_subagents":false,` + base + `}`, `{` + base + `}`},
		{"106 merged with effort", "codex", transform{agents: true}, `{"allow_subagents": true ,` + base + `,"model_reasoning_effort":"xhigh"}`,
			`{` + base + `,"config":{"model_reasoning_effort":"xhigh","features.multi_agent":true,"agents.enabled":true}}`},
		{"108 old Codex gets the feature only", "codex", transform{}, `{` + base + `,"allow_subagents":true}`, `{` + base + `,"config":{"features.multi_agent":true}}`},
		{"repeated keys go all", "codex", transform{}, `{"goal":"a",` + base + `,"goal":""}`, `{` + base + `}`},
		{"empty object", "codex", transform{goal: "g"}, `{}`, `{"developer-instructions":"` + lead + `\ng"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			const frame = `{"id":9007199254740993, "x":1e400,"params" : {"_meta":{"progressToken": 1.0},"arguments":%s ,"name":"%s"},"method":"tools/call"}`
			message := fmt.Appendf(nil, frame, tt.in, tt.tool)
			at, ok := lookup(message, "params", "arguments")
			require.True(t, ok)
			got, _ := tt.server.apply(tt.tool, message, at)
			assert.Equal(t, fmt.Sprintf(frame, tt.want, tt.tool), string(got))
		})
	}
}

func TestTransformLogs(t *testing.T) {
	tests := []struct {
		tool, in string
		server   transform
		want     []string
	}{
		{"codex", `{"model_reasoning_effort":"max","allow_subagents":true,"goal":"` + secret + `"}`, transform{agents: true},
			[]string{"applied per-session reasoning effort max",
				"enabled native Codex subagents for this session (features.multi_agent=true, agents.enabled=true)",
				"injected per-call goal into developer-instructions"}},
		{"codex", `{"allow_subagents":true}`, transform{goal: secret},
			[]string{"enabled native Codex subagents for this session (features.multi_agent=true)", "injected server goal into developer-instructions"}},
		{"codex-reply", `{"prompt":"` + secret + `","goal":"x"}`, transform{}, []string{"injected per-call goal into codex-reply prompt"}},
		{"codex", `{"goal":" "}`, transform{}, []string{"stripped per-call goal arg"}},
	}
	for _, tt := range tests {
		_, logs := tt.server.apply(tt.tool, []byte(tt.in), span{0, len(tt.in)})
		assert.Equal(t, tt.want, logs)
		assert.NotContains(t, fmt.Sprint(logs), secret)
	}
}

// FuzzArguments feeds calls through validation and translation: whatever is
// valid stays valid JSON, keeps every byte outside of the arguments, and keeps
// the arguments that are not ours as they were.
func FuzzArguments(f *testing.F) {
	f.Add(`{"params":{"name":"codex","arguments":{"prompt":"p","cwd":"/w","sandbox":"read-only","goal":"g","allow_subagents":true}}}`, "")
	f.Add(`{"params":{"arguments":{"goal":" ","x":[1,{"goal":2}],"prompt":"\u00e9\"\\"},"_meta":{}}}`, "server")
	f.Add(`{"params":{"arguments":{"prompt":"a","prompt":"b","threadId":"t"}}}`, "é")
	f.Add("{\"params\":{\"arguments\":{\"\\u0067oal\":\"\xff\"}}}", "")
	f.Fuzz(func(t *testing.T, message, goal string) {
		at, ok := lookup([]byte(message), "params", "arguments")
		for _, tool := range newCatalog(DefaultModels) {
			v := tool.validate([]byte(message), at, func(string) string { return "" })
			if !ok || v != nil || !json.Valid([]byte(message)) || tool.native != tool.name {
				continue
			}
			out, _ := transform{goal: goal, agents: true}.apply(tool.name, []byte(message), at)
			require.True(t, json.Valid(out), "%s", out)
			require.Equal(t, message[:at.start], string(out[:at.start]))
			tail := message[at.end:]
			require.Equal(t, tail, string(out[len(out)-len(tail):]))
			var before, after map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(at.of([]byte(message)), &before))
			require.NoError(t, json.Unmarshal(out[at.start:len(out)-len(tail)], &after))
			for _, name := range []string{"cwd", "sandbox", "model", "threadId"} {
				require.Equal(t, before[name], after[name])
			}
			for name := range after {
				_, kept := before[name]
				require.True(t, kept || name == "config" || name == "developer-instructions", name)
			}
			require.NotContains(t, after, "goal")
		}
	})
}
