package codex

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const secret = "S3NTINEL"

func validateText(t *testing.T, toolName, arguments string) *invalid {
	t.Helper()
	tool := newCatalog(DefaultModels).tool(toolName)
	require.NotNil(t, tool)
	checkCwd := func(path string) string {
		switch path {
		case "/gone":
			return "must exist"
		case "/etc":
			return "must be inside a workspace root: /ws"
		}
		return ""
	}
	message := []byte(`{"params":{"arguments":` + arguments + `}}`)
	if arguments == "" {
		message = []byte(`{"params":{}}`)
	}
	at, _ := lookup(message, "params", "arguments")
	return tool.validate(message, at, checkCwd)
}

func TestValidate(t *testing.T) {
	const (
		sandboxes = "must be one of: read-only, workspace-write, danger-full-access"
		models    = "must be one of: gpt-5.6-sol, gpt-5.6-terra"
		efforts   = "must be one of: medium, high, xhigh, max"
		good      = `"prompt":"","cwd":"/ws","sandbox":"read-only"`
	)
	tests := []struct {
		name, tool, arguments string
		want                  []issue
	}{
		{"blank prompt is allowed", "codex", `{` + good + `}`, nil},
		{"all arguments", "codex", `{` + good + `,"model":"gpt-5.6-terra","model_reasoning_effort":"max","allow_subagents":false,"goal":"g"}`, nil},
		{"escaped names are the same names", "codex", `{"\u0070rompt":"","cwd":"/ws","sandbox":"read-only"}`, nil},
		{"109 native arguments are hidden", "codex",
			`{` + good + `,"config":{"k":"` + secret + `"},"approval-policy":"` + secret + `","base-instructions":"` + secret + `","config":1}`,
			[]issue{{"approval-policy", "is not supported"}, {"base-instructions", "is not supported"}, {"config", "is not supported"}}},
		{"names match exactly", "codex", `{` + good + `,"Model":"x"}`, []issue{{"Model", "is not supported"}}},
		{"110 missing required", "codex", `{"goal":"` + secret + `"}`,
			[]issue{{"prompt", "is required"}, {"cwd", "is required"}, {"sandbox", "is required"}}},
		{"111 malformed values in check order", "codex",
			`{"goal":1,"allow_subagents":"` + secret + `","model_reasoning_effort":"low","model":"` + secret + `","sandbox":"` + secret + `","cwd":"rel/` + secret + `","prompt":["` + secret + `"]}`,
			[]issue{{"prompt", "must be a string"}, {"cwd", "must be an absolute path"}, {"sandbox", sandboxes}, {"model", models},
				{"model_reasoning_effort", efforts}, {"allow_subagents", "must be a boolean"}, {"goal", "must be a string"}}},
		{"111 null is no value", "codex", `{"prompt":null,"cwd":null,"sandbox":null,"allow_subagents":null}`,
			[]issue{{"prompt", "must be a string"}, {"cwd", "must be a string"}, {"sandbox", sandboxes}, {"allow_subagents", "must be a boolean"}}},
		{"required, then unsupported, then values", "codex", `{"zz":1,"aa":1,"cwd":"x"}`,
			[]issue{{"prompt", "is required"}, {"sandbox", "is required"}, {"aa", "is not supported"}, {"zz", "is not supported"}, {"cwd", "must be an absolute path"}}},
		{"the last of repeated arguments counts", "codex", `{` + good + `,"sandbox":"x"}`, []issue{{"sandbox", sandboxes}}},
		{"cwd must exist", "codex", `{"prompt":"","cwd":"/gone","sandbox":"read-only"}`, []issue{{"cwd", "must exist"}}},
		{"cwd must be in a root", "codex", `{"prompt":"","cwd":"/etc","sandbox":"read-only"}`, []issue{{"cwd", "must be inside a workspace root: /ws"}}},
		{"112 null arguments", "codex", `null`, []issue{{"arguments", "must be an object"}}},
		{"112 missing arguments", "codex", ``, []issue{{"arguments", "must be an object"}}},
		{"112 array", "codex-reply", ` [1]`, []issue{{"arguments", "must be an object"}}},
		{"112 text", "codex-reply", `"` + secret + `"`, []issue{{"arguments", "must be an object"}}},
		{"reply", "codex-reply", `{"prompt":"","threadId":"t","goal":""}`, nil},
		{"113 conversationId is not threadId", "codex-reply", `{"prompt":"p","conversationId":"` + secret + `"}`,
			[]issue{{"threadId", "is required"}, {"conversationId", "is not supported"}}},
		{"114 reply rejects session controls", "codex-reply", `{"prompt":"p","threadId":"t","sandbox":"read-only","model":"gpt-5.6-sol","cwd":"/ws"}`,
			[]issue{{"cwd", "is not supported"}, {"model", "is not supported"}, {"sandbox", "is not supported"}}},
		{"113 blank threadId, after goal", "codex-reply", `{"prompt":"p","threadId":" \t","goal":true}`,
			[]issue{{"goal", "must be a string"}, {"threadId", "must not be blank"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := validateText(t, tt.tool, tt.arguments)
			if tt.want == nil {
				require.Nil(t, got)
				return
			}
			require.NotNil(t, got)
			assert.Equal(t, tt.want, got.Issues)
			data, err := json.Marshal(got)
			require.NoError(t, err)
			assert.NotContains(t, string(data)+got.fields(), secret, "values are never echoed")
		})
	}
}

func TestFieldsOfLogLineAreTame(t *testing.T) {
	arguments := `{"a\nb":1,"x` + strings.Repeat("y", 100) + `":1,`
	for i := range 40 {
		arguments += fmt.Sprintf(`"k%d":1,`, i)
	}
	v := validateText(t, "codex-reply", strings.TrimSuffix(arguments, ",")+"}")
	require.NotNil(t, v)
	assert.NotContains(t, v.fields(), "\n")
	assert.Contains(t, v.fields(), `a\nb`)
	assert.Less(t, len(v.fields()), 2000)
	assert.True(t, strings.HasSuffix(v.fields(), "…"))
}
