package scenario

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

const base = `"prompt":"p","cwd":"/ws","sandbox":"read-only"`

// Rewrite is what becomes of a call's arguments. Old says that Codex is one
// without a table of agents.
type Rewrite struct {
	Name, Tool, Goal string
	Old              bool
	In, Want         string // arguments; the same text means the same bytes
}

// Rewrites returns the table of the translation of calls.
func Rewrites() []Rewrite {
	return []Rewrite{
		{"91 reply without goal", "codex-reply", "", false, `{ "prompt" : "héllo \u00e9 \ud83d\ude00","threadId":"t" }`, `{ "prompt" : "héllo \u00e9 \ud83d\ude00","threadId":"t" }`},
		{"92 96 codex without selectors", "codex", "", false, `{ ` + base + ` , "model" : "gpt-5.6-sol"}`, `{ ` + base + ` , "model" : "gpt-5.6-sol"}`},
		{"93 Sol and medium", "codex", "", false, `{` + base + `,"model":"gpt-5.6-sol","model_reasoning_effort":"medium"}`,
			`{` + base + `,"model":"gpt-5.6-sol","config":{"model_reasoning_effort":"medium"}}`},
		{"94 Terra and high", "codex", "", false, `{"model_reasoning_effort":"high",` + base + `,"model":"gpt-5.6-terra"}`,
			`{` + base + `,"model":"gpt-5.6-terra","config":{"model_reasoning_effort":"high"}}`},
		{"95 max alone", "codex", "", false, `{` + base + `,"model_reasoning_effort":"max"}`, `{` + base + `,"config":{"model_reasoning_effort":"max"}}`},
		{"97 max and goal", "codex", "", false, `{` + base + `,"goal":" win ","model_reasoning_effort":"max"}`,
			`{` + base + `,"config":{"model_reasoning_effort":"max"},"developer-instructions":"` + Lead + `\nwin"}`},
		{"98 103 goal of several words", "codex", "", false, `{` + base + `,"goal":"keep <the> \"API\"\nstable"}`,
			`{` + base + `,"developer-instructions":"` + Lead + `\nkeep <the> \"API\"\nstable"}`},
		{"99 server goal", "codex", "srv", false, `{` + base + `}`, `{` + base + `,"developer-instructions":"` + Lead + `\nsrv"}`},
		{"100 call overrides server", "codex", "srv", false, `{` + base + `,"goal":"call"}`, `{` + base + `,"developer-instructions":"` + Lead + `\ncall"}`},
		{"101 blank suppresses", "codex", "srv", false, `{` + base + `,"goal":" \n"}`, `{` + base + `}`},
		{"101 blank server goal is none", "codex", "  ", false, `{` + base + `}`, `{` + base + `}`},
		{"102 reply goal", "codex-reply", "", false, `{"threadId":"t", "prompt" : "big \u00e9 é","goal":"g"}`,
			`{"threadId":"t","prompt" : "Reminder — standing objective for this thread: g\n\nbig \u00e9 é"}`},
		{"102 reply with server goal", "codex-reply", "srv", false, `{"prompt":"","threadId":"t"}`,
			`{"prompt":"Reminder — standing objective for this thread: srv\n\n","threadId":"t"}`},
		{"101 reply blank suppresses", "codex-reply", "srv", false, `{"prompt":"p","threadId":"t","goal":""}`, `{"prompt":"p","threadId":"t"}`},
		{"104 subagents", "codex", "", false, `{` + base + `,"allow_subagents":true}`,
			`{` + base + `,"config":{"features.multi_agent":true,"agents.enabled":true}}`},
		{"105 no subagents", "codex", "", false, `{"allow_subagents":false,` + base + `}`, `{` + base + `}`},
		{"106 merged with effort", "codex", "", false, `{"allow_subagents": true ,` + base + `,"model_reasoning_effort":"xhigh"}`,
			`{` + base + `,"config":{"model_reasoning_effort":"xhigh","features.multi_agent":true,"agents.enabled":true}}`},
		{"108 old Codex gets the feature only", "codex", "", true, `{` + base + `,"allow_subagents":true}`, `{` + base + `,"config":{"features.multi_agent":true}}`},
		{"repeated keys go all", "codex", "", false, `{"goal":"a",` + base + `,"goal":""}`, `{` + base + `}`},
	}
}

// RewriteFrame is a call around arguments and the name of a tool, with its id,
// and with what a careless bridge would change.
const RewriteFrame = `{"id":%d, "x":1e400,"params" : {"_meta":{"progressToken": 1.0},"arguments":%s ,"name":"%s"},"method":"tools/call"}`

// rewrites is one scenario for each way in which a server is set up.
func rewrites(l *table) {
	for _, server := range []struct {
		numbers, goal, version string
	}{
		{"91 92 93 94 95 96 97 98 101 102 103 104 105 106", "", ""},
		{"99 100 101 102", "srv", ""},
		{"101 a blank goal", "  ", ""},
		{"108", "", "codex-cli 0.130.0"},
	} {
		cases := slices.DeleteFunc(Rewrites(), func(r Rewrite) bool { return r.Goal != server.goal || r.Old != (server.version != "") })
		l.scenario(server.numbers+" calls are translated", Settings{Goal: server.goal, Version: server.version}, func(t testing.TB, b *Bridge) {
			var lines []string
			for i, r := range cases {
				lines = append(lines, fmt.Sprintf(RewriteFrame, 1000+i, r.In, r.Tool))
			}
			b.send(lines...)
			got := strings.Split(strings.TrimSpace(b.codexGot()), "\n")
			got = got[max(0, len(got)-len(cases)):]
			if assert.Len(t, got, len(cases)) {
				for i, r := range cases {
					assert.Equal(t, fmt.Sprintf(RewriteFrame, 1000+i, r.Want, r.Tool), got[i], r.Name)
				}
			}
			assert.Empty(t, b.output())
			b.leave()
		})
	}
}
