package codex

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/mcp"
	"mcpagents/internal/testkit/scenario"
)

func TestTransform(t *testing.T) {
	tests := append(scenario.Rewrites(),
		scenario.Rewrite{Name: "empty object", Tool: "codex", Goal: "g", In: `{}`, Want: `{"developer-instructions":"` + scenario.Lead + `\ng"}`})
	for _, tt := range tests {
		t.Run(tt.Name, func(t *testing.T) {
			message := fmt.Appendf(nil, scenario.RewriteFrame, 9007199254740993, tt.In, tt.Tool)
			at, ok := mcp.Lookup(message, "params", "arguments")
			require.True(t, ok)
			got, _ := transform{goal: tt.Goal, agents: !tt.Old}.apply(newCall(&tool{name: tt.Tool}, message, at))
			assert.Equal(t, fmt.Sprintf(scenario.RewriteFrame, 9007199254740993, tt.Want, tt.Tool), string(got))
		})
	}
}

func TestTransformLogs(t *testing.T) {
	tests := []struct {
		tool, in string
		server   transform
		want     []string
	}{
		{"codex", `{"model_reasoning_effort":"max","allow_subagents":true,"goal":"` + scenario.Secret + `"}`, transform{agents: true},
			[]string{"applied per-session reasoning effort max",
				"enabled native Codex subagents for this session (features.multi_agent=true, agents.enabled=true)",
				"injected per-call goal into developer-instructions"}},
		{"codex", `{"allow_subagents":true}`, transform{goal: scenario.Secret},
			[]string{"enabled native Codex subagents for this session (features.multi_agent=true)", "injected server goal into developer-instructions"}},
		{"codex-reply", `{"prompt":"` + scenario.Secret + `","goal":"x"}`, transform{}, []string{"injected per-call goal into codex-reply prompt"}},
		{"codex", `{"goal":" "}`, transform{}, []string{"stripped per-call goal arg"}},
	}
	for _, tt := range tests {
		_, logs := tt.server.apply(newCall(&tool{name: tt.tool}, []byte(tt.in), mcp.Span{Start: 0, End: len(tt.in)}))
		assert.Equal(t, tt.want, logs)
		assert.NotContains(t, fmt.Sprint(logs), scenario.Secret)
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
		at, ok := mcp.Lookup([]byte(message), "params", "arguments")
		for _, tool := range newCatalog(DefaultModels) {
			c := newCall(tool, []byte(message), at)
			v := c.validate(func(string) string { return "" })
			if !ok || v != nil || !json.Valid([]byte(message)) || tool.native != tool.name {
				continue
			}
			out, _ := transform{goal: goal, agents: true}.apply(c)
			require.True(t, json.Valid(out), "%s", out)
			require.Equal(t, message[:at.Start], string(out[:at.Start]))
			tail := message[at.End:]
			require.Equal(t, tail, string(out[len(out)-len(tail):]))
			var before, after map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(at.Of([]byte(message)), &before))
			require.NoError(t, json.Unmarshal(out[at.Start:len(out)-len(tail)], &after))
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
