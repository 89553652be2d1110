package acceptance

import (
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// silentEngine is the address of an engine that accepts and never answers.
func silentEngine(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mae") // short: a socket's path has a limit
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	path := filepath.Join(dir, "engine.sock")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	var accepting sync.WaitGroup
	accepting.Go(func() {
		var kept []net.Conn
		defer func() {
			for _, c := range kept {
				_ = c.Close()
			}
		}()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			kept = append(kept, c)
		}
	})
	t.Cleanup(func() { _ = l.Close(); accepting.Wait() })
	return "unix://" + path
}

// Clients give a server some seconds to start. An engine that hangs, or pulls
// an image, must not take them.
func TestSilentEngineHoldsNoHandshake(t *testing.T) {
	for _, tt := range []struct {
		provider  string
		tool      string
		arguments func(s *setting) map[string]any
	}{
		{"codex", "codex", func(s *setting) map[string]any {
			return map[string]any{"prompt": "p", "cwd": s.workspace, "sandbox": "read-only"}
		}},
		{"claude", "claude_code", func(*setting) map[string]any { return map[string]any{"prompt": "p"} }},
	} {
		t.Run(tt.provider, func(t *testing.T) {
			s := newSetting(t, "docker", "mcp-agents-test/none:1")
			s.engine = silentEngine(t)
			s.args = []string{"--provider", tt.provider}
			s.env = []string{"ANTHROPIC_API_KEY=none"}
			c := s.start(t)
			c.initialize()
			list := c.answer(c.request("tools/list", map[string]any{}))
			require.Nil(t, list.Error)
			require.Contains(t, string(list.Result), `"name":"`+tt.tool+`"`)
			r := c.answer(c.request("tools/call", map[string]any{"name": tt.tool, "arguments": tt.arguments(s)}))
			require.Nil(t, r.Error)
			require.Contains(t, string(r.Result), `"isError":true`)
			require.Contains(t, r.text(), "the Docker engine at "+s.engine)
			require.Contains(t, r.text(), "does not answer: restart it")
			require.NoError(t, c.in.Close())
			require.Zero(t, c.exit())
		})
	}
}
