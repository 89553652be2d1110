package scenario

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Issue is what is wrong with an argument.
type Issue struct {
	Argument string `json:"argument"`
	Problem  string `json:"problem"`
}

// Fault is a call of a tool with arguments, which are JSON or absent, and what
// is wrong with them.
type Fault struct {
	Name, Tool, Arguments string
	Want                  []Issue
}

// CheckCwd is what a bridge with the workspace /ws says of a directory.
func CheckCwd(path string) (problem string) {
	switch path {
	case "/ws/gone":
		return "must exist"
	case "/etc":
		return "must be inside a workspace root: /ws"
	}
	return ""
}

// Faults returns the table of the validation of calls.
func Faults() []Fault {
	const (
		sandboxes = "must be one of: read-only, workspace-write, danger-full-access"
		models    = "must be one of: gpt-5.6-sol, gpt-5.6-terra"
		efforts   = "must be one of: medium, high, xhigh, max"
		good      = `"prompt":"","cwd":"/ws","sandbox":"read-only"`
	)
	return []Fault{
		{"blank prompt is allowed", "codex", `{` + good + `}`, nil},
		{"all arguments", "codex", `{` + good + `,"model":"gpt-5.6-terra","model_reasoning_effort":"max","allow_subagents":false,"goal":"g"}`, nil},
		{"escaped names are the same names", "codex", `{"\u0070rompt":"","cwd":"/ws","sandbox":"read-only"}`, nil},
		{"109 native arguments are hidden", "codex",
			`{` + good + `,"config":{"k":"` + Secret + `"},"approval-policy":"` + Secret + `","base-instructions":"` + Secret + `","config":1}`,
			[]Issue{{"approval-policy", "is not supported"}, {"base-instructions", "is not supported"}, {"config", "is not supported"}}},
		{"names match exactly", "codex", `{` + good + `,"Model":"x"}`, []Issue{{"Model", "is not supported"}}},
		{"110 missing required", "codex", `{"goal":"` + Secret + `"}`,
			[]Issue{{"prompt", "is required"}, {"cwd", "is required"}, {"sandbox", "is required"}}},
		{"111 malformed values in check order", "codex",
			`{"goal":1,"allow_subagents":"` + Secret + `","model_reasoning_effort":"low","model":"` + Secret + `","sandbox":"` + Secret + `","cwd":"rel/` + Secret + `","prompt":["` + Secret + `"]}`,
			[]Issue{{"prompt", "must be a string"}, {"cwd", "must be an absolute path"}, {"sandbox", sandboxes}, {"model", models},
				{"model_reasoning_effort", efforts}, {"allow_subagents", "must be a boolean"}, {"goal", "must be a string"}}},
		{"111 null is no value", "codex", `{"prompt":null,"cwd":null,"sandbox":null,"allow_subagents":null}`,
			[]Issue{{"prompt", "must be a string"}, {"cwd", "must be a string"}, {"sandbox", sandboxes}, {"allow_subagents", "must be a boolean"}}},
		{"required, then unsupported, then values", "codex", `{"zz":1,"aa":1,"cwd":"x"}`,
			[]Issue{{"prompt", "is required"}, {"sandbox", "is required"}, {"aa", "is not supported"}, {"zz", "is not supported"}, {"cwd", "must be an absolute path"}}},
		{"the last of repeated arguments counts", "codex", `{` + good + `,"sandbox":"x"}`, []Issue{{"sandbox", sandboxes}}},
		{"cwd must exist", "codex", `{"prompt":"","cwd":"/ws/gone","sandbox":"read-only"}`, []Issue{{"cwd", "must exist"}}},
		{"cwd must be in a root", "codex", `{"prompt":"","cwd":"/etc","sandbox":"read-only"}`, []Issue{{"cwd", "must be inside a workspace root: /ws"}}},
		{"112 null arguments", "codex", `null`, []Issue{{"arguments", "must be an object"}}},
		{"112 missing arguments", "codex", ``, []Issue{{"arguments", "must be an object"}}},
		{"112 array", "codex-reply", ` [1]`, []Issue{{"arguments", "must be an object"}}},
		{"112 text", "codex-reply", `"` + Secret + `"`, []Issue{{"arguments", "must be an object"}}},
		{"reply", "codex-reply", `{"prompt":"","threadId":"t","goal":""}`, nil},
		{"113 conversationId is not threadId", "codex-reply", `{"prompt":"p","conversationId":"` + Secret + `"}`,
			[]Issue{{"threadId", "is required"}, {"conversationId", "is not supported"}}},
		{"114 reply rejects session controls", "codex-reply", `{"prompt":"p","threadId":"t","sandbox":"read-only","model":"gpt-5.6-sol","cwd":"/ws"}`,
			[]Issue{{"cwd", "is not supported"}, {"model", "is not supported"}, {"sandbox", "is not supported"}}},
		{"113 blank threadId, after goal", "codex-reply", `{"prompt":"p","threadId":" \t","goal":true}`,
			[]Issue{{"goal", "must be a string"}, {"threadId", "must not be blank"}}},
	}
}

func faults(l *table) {
	l.scenario("109 110 111 112 113 114 arguments", Settings{}, func(t testing.TB, b *Bridge) {
		for i, f := range Faults() {
			line := ToolLine(1000+i, f.Tool, f.Arguments)
			if f.Arguments == "" {
				line = strings.Replace(line, `,"arguments":`, "", 1)
			}
			passed := len(b.codexGot())
			b.send(line)
			out := b.output()
			if f.Want == nil {
				assert.Empty(t, out, f.Name)
				assert.Contains(t, b.codexGot()[passed:], fmt.Sprintf(`"id":%d`, 1000+i), f.Name)
				continue
			}
			issues, err := json.Marshal(f.Want)
			require.NoError(t, err)
			assert.Contains(t, out, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32602,"message":"mcp-agents: invalid arguments for %s"`, 1000+i, f.Tool), f.Name)
			assert.Contains(t, out, `"issues":`+string(issues), f.Name)
			assert.NotContains(t, out, Secret, "values are never echoed")
			assert.Len(t, b.codexGot(), passed, "%s: nothing of it reaches Codex", f.Name)
		}
		b.leave()
		b.logsNone(Secret)
	})
}
