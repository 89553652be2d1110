package model

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRecordedSession checks the recording of `codex mcp-server` 0.153.4
// (initialize, tools/list, one call with a command) that was made against this
// server: it is whole, and it shows nothing of the machine it was made on.
func TestRecordedSession(t *testing.T) {
	data, err := os.ReadFile("testdata/codex-0.153.4-session.jsonl")
	require.NoError(t, err)
	for _, path := range []string{"/tmp", "/root/", "/var/", "/work/", "sk-", "Bearer"} {
		assert.NotContains(t, string(data), path)
	}
	var ids []int
	events := map[string]int{}
	for line := range bytes.Lines(data) {
		var frame struct {
			ID     *int   `json:"id"`
			Method string `json:"method"`
			Params struct {
				Msg struct {
					Type string `json:"type"`
				} `json:"msg"`
			} `json:"params"`
		}
		require.NoError(t, json.Unmarshal(line, &frame))
		if frame.ID != nil {
			ids = append(ids, *frame.ID)
		} else {
			assert.Equal(t, "codex/event", frame.Method)
			events[frame.Params.Msg.Type]++
		}
	}
	assert.Equal(t, []int{1, 2, 3}, ids)
	for _, event := range []string{"session_configured", "exec_command_begin", "exec_command_end", "task_complete"} {
		assert.Equal(t, 1, events[event], event)
	}
	assert.Contains(t, string(data), `"content":"Wrote hello.txt."`)
}
