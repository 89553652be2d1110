package claude

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files")

// TestTools compares name, description and schema of each tool with a file.
func TestTools(t *testing.T) {
	p := New(Config{Model: "claude-opus-4-8", Effort: "xhigh"})
	var names []string
	for _, tool := range p.Tools() {
		names = append(names, tool.Name)
		var got bytes.Buffer
		b, err := json.Marshal(map[string]any{"name": tool.Name, "description": tool.Description, "inputSchema": tool.InputSchema})
		require.NoError(t, err)
		require.NoError(t, json.Indent(&got, b, "", "  "))
		file := filepath.Join("testdata", tool.Name+".json")
		if *update {
			require.NoError(t, os.WriteFile(file, append(got.Bytes(), '\n'), 0o644))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err, "run the test with -update to create it")
		assert.Equal(t, string(want), got.String()+"\n")
	}
	assert.Equal(t, []string{"ping", "claude_code", "claude-start", "claude-status", "claude-result", "claude-cancel"}, names)
}

func TestTimeoutInSchema(t *testing.T) {
	for timeout, want := range map[time.Duration]string{0: "900000ms", 7 * time.Second: "7000ms"} {
		schema := string(New(Config{Timeout: timeout}).blockingTool().InputSchema)
		assert.Contains(t, schema, want)
		assert.Contains(t, schema, `"additionalProperties":true`)
		assert.Contains(t, schema, `"minimum":1`)
	}
}
