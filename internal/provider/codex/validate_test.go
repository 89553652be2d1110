package codex

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/mcp"
	"mcpagents/internal/testkit/scenario"
)

func validateText(t *testing.T, toolName, arguments string) *invalid {
	t.Helper()
	tool := newCatalog(DefaultModels).tool(toolName)
	require.NotNil(t, tool)
	message := []byte(`{"params":{"arguments":` + arguments + `}}`)
	if arguments == "" {
		message = []byte(`{"params":{}}`)
	}
	at, _ := mcp.Lookup(message, "params", "arguments")
	return newCall(tool, message, at).validate(scenario.CheckCwd)
}

func TestValidate(t *testing.T) {
	for _, tt := range scenario.Faults() {
		t.Run(tt.Name, func(t *testing.T) {
			got := validateText(t, tt.Tool, tt.Arguments)
			if tt.Want == nil {
				require.Nil(t, got)
				return
			}
			require.NotNil(t, got)
			var issues []scenario.Issue
			for _, i := range got.Issues {
				issues = append(issues, scenario.Issue(i))
			}
			assert.Equal(t, tt.Want, issues)
			data, err := json.Marshal(got)
			require.NoError(t, err)
			assert.NotContains(t, string(data)+got.fields(), scenario.Secret, "values are never echoed")
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
