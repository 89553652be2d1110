package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/version"
)

// TestProtocol is what clients of both providers rely on, each under its number.
func TestProtocol(t *testing.T) {
	claude := start(t, "claude").tools()
	gemini := start(t, "gemini").tools()
	ping := `{"type":"object","properties":{},"additionalProperties":false}`
	t.Run("46 claude lists ping", func(t *testing.T) {
		assert.Equal(t, "ping", claude[0].Name, "first")
		assert.JSONEq(t, ping, schema(t, claude, "ping"))
	})
	t.Run("47 gemini lists ping", func(t *testing.T) {
		assert.Equal(t, []string{"ping", "gemini"}, names(gemini))
		assert.JSONEq(t, ping, schema(t, gemini, "ping"))
	})
	t.Run("48 claude_code shows its default timeout", func(t *testing.T) {
		assert.Contains(t, timeoutText(t, claude, "claude_code"), "900000ms")
	})
	t.Run("49 --timeout changes what it shows", func(t *testing.T) {
		text := timeoutText(t, start(t, "claude", "--timeout", "7").tools(), "claude_code")
		assert.Contains(t, text, "7000ms")
		assert.NotContains(t, text, "900000ms")
	})
	for number, provider := range map[string]string{"50": "claude", "55": "gemini"} {
		t.Run(number+" "+provider+" answers the handshake", func(t *testing.T) { handshake(t, provider) })
	}
	t.Run("51 claude lists exactly its six tools", func(t *testing.T) {
		assert.Equal(t, []string{"ping", "claude_code", "claude-start", "claude-status", "claude-result", "claude-cancel"}, names(claude))
		for _, one := range append(claude, gemini...) {
			for member := range one.members {
				assert.Contains(t, []string{"name", "description", "inputSchema"}, member, one.Name)
			}
		}
	})
	t.Run("52 the schemas of its job tools are closed and exact", func(t *testing.T) {
		job := `"jobId":{"type":"string","minLength":1}`
		for name, want := range map[string]string{
			"claude-start":  `{"prompt":{"type":"string","minLength":1},"cwd":{"type":"string","minLength":1}},"required":["prompt","cwd"]`,
			"claude-status": `{` + job + `,"cursor":{"type":"integer","minimum":0},"wait_ms":{"type":"integer","minimum":0,"maximum":60000}},"required":["jobId","cursor"]`,
			"claude-result": `{` + job + `,"offset":{"type":"integer","minimum":0}},"required":["jobId"]`,
			"claude-cancel": `{` + job + `},"required":["jobId"]`,
		} {
			assert.JSONEq(t, `{"type":"object","additionalProperties":false,"properties":`+want+`}`, schema(t, claude, name), name)
		}
	})
	open := `{"type":"object","additionalProperties":true,"properties":{"prompt":{"type":"string"},"timeout_ms":{"type":"integer","minimum":1}},"required":["prompt"]}`
	t.Run("53 the schema of claude_code is open", func(t *testing.T) { assert.JSONEq(t, open, schema(t, claude, "claude_code")) })
	t.Run("54 gemini shows its default timeout", func(t *testing.T) {
		assert.Contains(t, timeoutText(t, start(t, "gemini").tools(), "gemini"), "300000ms")
		assert.JSONEq(t, open, schema(t, gemini, "gemini"))
	})
	t.Run("56 the end of input kills a running child", endOfInput)
}

// timeoutText is how a tool describes its time.
func timeoutText(t *testing.T, list []tool, name string) string {
	t.Helper()
	for _, one := range list {
		if one.Name == name {
			return fmt.Sprint(one.Schema["properties"].(map[string]any)["timeout_ms"].(map[string]any)["description"])
		}
	}
	require.FailNow(t, "no tool "+name)
	return ""
}

func handshake(t *testing.T, provider string) {
	for asked, want := range map[string]string{"2025-11-25": "2025-11-25", "2024-10-07": "2024-10-07", "2031-01-01": "2025-11-25"} {
		s := start(t, provider)
		assert.JSONEq(t, fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"mcp-agents","version":%q}}`, want, version.Version),
			s.ask("initialize", map[string]any{"protocolVersion": asked, "capabilities": map[string]any{}, "clientInfo": map[string]string{"name": "t", "version": "1"}}))
		assert.JSONEq(t, `{"content":[{"type":"text","text":"pong"}]}`, s.ask("tools/call", map[string]any{"name": "ping", "arguments": map[string]any{}}))
		require.NoError(t, s.in.Close())
		assert.Zero(t, s.end(), s.stderr.String())
		assert.Contains(t, s.stderr.String(), "[mcp-agents] ready (provider: "+provider+")")
	}
}

// endOfInput: a call at work, with a process that left its session, ends with
// the client, and the server ends well.
func endOfInput(t *testing.T) {
	s := start(t, "claude")
	mark := filepath.Join(s.workspace, "at-work")
	s.send("tools/call", map[string]any{"name": "claude_code", "arguments": map[string]any{
		"prompt": `[{"do":"linger"},{"do":"ignore-term"},{"do":"write","path":"` + mark + `"},{"do":"stall"}]`}})
	require.Eventually(t, func() bool { _, err := os.Stat(mark); return err == nil }, 20*time.Second, 10*time.Millisecond)
	require.GreaterOrEqual(t, len(s.processes()), 2, "control: the fake and what it left behind are seen")
	require.NoError(t, s.in.Close())
	require.Zero(t, s.end(), s.stderr.String())
	assert.Contains(t, s.stderr.String(), "shutting down (provider=claude, reason=stdin-end)")
	require.Eventually(t, func() bool { return len(s.processes()) == 0 }, 5*time.Second, 10*time.Millisecond, "%s", s.processes())
}
