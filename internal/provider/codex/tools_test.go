package codex

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/mcp"
	"mcpagents/internal/testkit/scenario"
)

var update = flag.Bool("update", false, "write the snapshots in testdata/tools")

func TestToolSnapshots(t *testing.T) {
	for _, tool := range newCatalog(DefaultModels) {
		t.Run("118 133 134 138 139 "+tool.name, func(t *testing.T) {
			var got strings.Builder
			enc := json.NewEncoder(&got)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			require.NoError(t, enc.Encode(struct {
				Name        string          `json:"name"`
				Description string          `json:"description"`
				InputSchema json.RawMessage `json:"inputSchema"`
			}{tool.name, tool.description, tool.schema()}))
			path := filepath.Join("testdata", "tools", tool.name+".json")
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(got.String()), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err, "run the test with -update and look at the difference")
			assert.Equal(t, string(want), got.String())
		})
	}
}

func TestToolContract(t *testing.T) {
	list := newCatalog(DefaultModels)
	tests := []struct {
		name, tool        string
		allowed, required []string
	}{
		{"118 codex", "codex", []string{"prompt", "cwd", "sandbox", "model", "model_reasoning_effort", "allow_subagents", "goal"},
			[]string{"prompt", "cwd", "sandbox"}},
		{"118 codex-reply", "codex-reply", []string{"prompt", "threadId", "goal"}, []string{"prompt", "threadId"}},
		{"132 codex-status", "codex-status", []string{"jobId", "cursor", "wait_ms"}, []string{"jobId", "cursor"}},
		{"132 codex-commentary", "codex-commentary", []string{"jobId", "offset"}, []string{"jobId"}},
		{"132 codex-result", "codex-result", []string{"jobId", "offset"}, []string{"jobId"}},
		{"132 codex-cancel", "codex-cancel", []string{"jobId"}, []string{"jobId"}},
		{"120 codex-peek", "codex-peek", []string{"cwd", "threadId", "requestId"}, []string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tool := list.tool(tt.tool)
			require.NotNil(t, tool)
			assert.Equal(t, tt.allowed, tool.names(false))
			assert.Equal(t, tt.required, tool.names(true))
			for _, a := range tool.arguments {
				assert.Contains(t, checkOrder, a.name, "an argument that is never checked")
			}
			assert.NotContains(t, string(tool.schema()), `"default"`, "133 no default keys")
		})
	}
}

func TestDescriptionsExplainChoices(t *testing.T) {
	list := newCatalog(DefaultModels)
	codex := list.tool("codex")
	t.Run("136 of a choice", func(t *testing.T) {
		model := codex.argument("model").description
		for _, pattern := range []string{"gpt-5.6-sol.*demanding", "gpt-5.6-terra.*faster", "[Rr]epl.*inherit"} {
			assert.Regexp(t, pattern, model)
		}
		assert.Regexp(t, "repl.*inherit", strings.ToLower(model))
		assert.Regexp(t, "medium.*balanced.*high.*complex.*xhigh.*hard.*max.*quality-first.*repl.*inherit",
			strings.ToLower(codex.argument("model_reasoning_effort").description))
	})
	t.Run("135 allow_subagents", func(t *testing.T) {
		for _, tool := range list {
			begins := tool.name == "codex" || tool.name == "codex-start"
			assert.Equal(t, begins, tool.argument("allow_subagents") != nil, tool.name)
		}
		assert.Contains(t, codex.argument("allow_subagents").description, "default false")
	})
	t.Run("140 141 what is native stays hidden", func(t *testing.T) {
		assert.NotContains(t, codex.description, "Config struct")
		for _, tool := range list {
			for _, hidden := range []string{`"config"`, "approval", "network", "profile", "instructions"} {
				assert.NotContains(t, string(tool.schema()), hidden, tool.name)
			}
		}
	})
	t.Run("of jobs", func(t *testing.T) {
		for tool, words := range map[string]string{"codex-start": "Prefer codex", "codex-reply-start": "Prefer codex-reply", "codex-peek": "not evidence"} {
			assert.Contains(t, list.tool(tool).description, words)
		}
		assert.Contains(t, list.tool("codex-status").argument("wait_ms").description, "ceiling on idle waiting only")
	})
}

func TestToolsOfOurs(t *testing.T) {
	list := newCatalog(DefaultModels)
	names := func(frame string) []string {
		at, _ := mcp.Lookup([]byte(frame), "result")
		var all []string
		for _, e := range entries(t, list.curate([]byte(frame), at)) {
			all = append(all, strings.Trim(string(e["name"]), `"`))
		}
		return all
	}
	rest := []string{"codex-status", "codex-commentary", "codex-result", "codex-cancel", "codex-peek"}
	t.Run("119 all, in order, behind the native ones", func(t *testing.T) {
		assert.Equal(t, append([]string{"codex", "codex-reply", "codex-start", "codex-reply-start"}, rest...), names(scenario.NativeList(2)))
		assert.Equal(t, append([]string{"x", "codex", "y", "codex-start"}, rest...), names(`{"result":{"tools":[{"name":"x"},{"name":"codex"},{"name":"y"}]}}`))
		assert.Equal(t, append([]string{"codex-reply", "codex-peek", "codex-reply-start"}, rest[:4]...), names(`{"result":{"tools":[{"name":"codex-reply"},{"name":"codex-peek"}]}}`))
	})
	t.Run("132 a start has its native tool's schema", func(t *testing.T) {
		assert.Equal(t, list.tool("codex").schema(), list.tool("codex-start").schema())
		assert.Equal(t, list.tool("codex-reply").schema(), list.tool("codex-reply-start").schema())
	})
	t.Run("120 peek", func(t *testing.T) {
		assert.Contains(t, string(list.tool("codex-peek").schema()), `"required":[],"additionalProperties":false}`)
	})
}

func TestModelsFollowOperator(t *testing.T) {
	codex := newCatalog([]string{"m-one", "m-two"}).tool("codex")
	assert.Contains(t, string(codex.schema()), `"enum":["m-one","m-two"]`)
	assert.NotContains(t, string(codex.schema()), "gpt-5.6")
}

func TestCurate(t *testing.T) {
	list := newCatalog(DefaultModels)
	native := scenario.NativeList(2)
	drifted := strings.Replace(native, `"compact-prompt"`, `"goal":{"type":"object"},"model_reasoning_effort":{"type":"number"},"compact-prompt"`, 1)
	tests := []struct{ name, in string }{
		{"142 native metadata stays", native},
		{"137 146 upstream drift is replaced", drifted},
		{"142 unknown keys, order and spacing stay",
			`{"id":2, "result": {"nextCursor":"é\u00e9","tools":[ {"x":1e400,"inputSchema":{"a":[1]},"annotations":{"readOnlyHint":true},"name":"codex" },{"name":"other","description":"d"}]},"jsonrpc":"2.0"}`},
		{"missing and repeated keys", `{"result":{"tools":[{"name":"codex-reply"},{"description":"a","name":"codex","description":"b"}]}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			result, ok := mcp.Lookup([]byte(tt.in), "result")
			require.True(t, ok)
			out := list.curate([]byte(tt.in), result)
			require.True(t, json.Valid(out), "%s", out)
			before, after := entries(t, []byte(tt.in)), entries(t, out)
			for i, entry := range after[:len(before)] {
				name := strings.Trim(string(entry["name"]), `"`)
				if tool := list.tool(name); tool != nil {
					assert.Equal(t, string(mcp.Encode(tool.description)), string(entry["description"]))
					assert.Equal(t, string(tool.schema()), string(entry["inputSchema"]), "140 141")
					delete(entry, "description")
					delete(entry, "inputSchema")
					delete(before[i], "description")
					delete(before[i], "inputSchema")
				}
				assert.Equal(t, before[i], entry, "all other members keep their bytes")
			}
			head, _, _ := strings.Cut(tt.in, `"tools"`)
			assert.True(t, strings.HasPrefix(string(out), head), "bytes before the list stay")
		})
	}
	for name, in := range map[string]string{
		"147 no codex tools":   `{"result":{"tools":[{"name":"x","description":"codex","inputSchema":{"codex":1}}]}}`,
		"148 tools no array":   `{"result":{"tools":{"name":"codex"}}}`,
		"148 no result object": `{"result":null}`,
	} {
		t.Run(name, func(t *testing.T) {
			result, _ := mcp.Lookup([]byte(in), "result")
			assert.Equal(t, in, string(list.curate([]byte(in), result)))
		})
	}
}

func entries(t *testing.T, message []byte) []map[string]json.RawMessage {
	var m struct {
		Result struct{ Tools []map[string]json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(message, &m))
	return m.Result.Tools
}

func TestLocalToolsAreThoseOfPinnedCodex(t *testing.T) {
	list := newCatalog(DefaultModels)
	native := []byte(scenario.NativeList(2))
	at, _ := mcp.Lookup(native, "result")
	curated := list.curate(native, at)
	at, _ = mcp.Lookup(curated, "result")
	assert.JSONEq(t, string(at.Of(curated)), string(list.local()))
	assert.NotEqual(t, list.local(), newCatalog([]string{"other"}).local())
}

// TestToolsSuitClients holds what model APIs and clients demand of tools: a
// plain object at the root of the schema, and names that stay short enough
// when a client puts its prefix and the server's name before them.
func TestToolsSuitClients(t *testing.T) {
	const longestServerName = "mcp-agents-codex-abc" // 20 characters, more than our documents suggest
	for _, entry := range entries(t, []byte(`{"result":`+string(newCatalog(DefaultModels).local())+`}`)) {
		var name string
		require.NoError(t, json.Unmarshal(entry["name"], &name))
		t.Run(name, func(t *testing.T) {
			assert.Regexp(t, regexp.MustCompile(`^[a-zA-Z0-9_-]+$`), name)
			assert.LessOrEqual(t, len("mcp__"+longestServerName+"__"+name), 60)
			var schema map[string]any
			require.NoError(t, json.Unmarshal(entry["inputSchema"], &schema))
			assert.Equal(t, "object", schema["type"])
			assert.Equal(t, false, schema["additionalProperties"], "138")
			for _, key := range []string{"oneOf", "anyOf", "allOf", "if", "not", "$ref", "enum"} {
				assert.NotContains(t, schema, key)
			}
		})
	}
}
