package acceptance

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"

	"mcpagents/internal/testkit/images"
	"mcpagents/internal/testkit/wait"

	"github.com/stretchr/testify/require"
)

// slowRegistry is a registry on loopback that never sends a manifest. Asked
// gets a value for each request of one.
func slowRegistry(t *testing.T) (host string, asked <-chan struct{}) {
	t.Helper()
	began := make(chan struct{}, 16)
	quit := make(chan struct{})
	var open sync.WaitGroup
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "/manifests/") {
			return // "/v2/": yes, this is a registry
		}
		open.Add(1)
		defer open.Done()
		began <- struct{}{}
		select {
		case <-r.Context().Done():
		case <-quit:
		}
	}))
	t.Cleanup(func() { close(quit); server.CloseClientConnections(); server.Close(); open.Wait() })
	return strings.TrimPrefix(server.URL, "http://"), began
}

// An image that has to be pulled first takes its time. Meanwhile the client is
// answered, a call can be cancelled, and a kill leaves nothing of ours. (An
// engine may go on with a pull that nobody waits for: its own affair.)
func TestEndDuringAPull(t *testing.T) {
	images.Codex(t) // an engine is needed
	for _, provider := range []string{"codex", "claude"} {
		for _, end := range []string{"cancel", "client leaves", "SIGKILL", "SIGTERM"} {
			t.Run(provider+", "+end, func(t *testing.T) {
				t.Parallel() // most of it is waiting
				registry, asked := slowRegistry(t)
				s := newSetting(t, "docker", registry+"/slow:1")
				s.args = []string{"--provider", provider, "--warm", "0"}
				s.env = []string{"ANTHROPIC_API_KEY=none"}
				c := s.start(t)
				c.initialize()
				require.Contains(t, string(c.answer(c.request("tools/list", map[string]any{})).Result), `"name"`)
				call := 0
				if provider == "codex" {
					call = c.codex(stallingCall, nil)
				} else {
					call = c.request("tools/call", map[string]any{"name": "claude_code", "arguments": map[string]any{"prompt": "p"}})
				}
				wait.Recv(t, asked, "the engine did not ask the registry")
				status := 0
				c.begin()
				switch end {
				case "cancel":
					c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, call))
					require.Nil(t, c.answer(c.request("ping", nil)).Error)
					require.NotContains(t, c.answers, float64(call), "a cancelled call is not answered")
					require.NoError(t, c.in.Close())
				case "client leaves":
					require.NoError(t, c.in.Close())
				case "SIGKILL":
					require.NoError(t, c.cmd.Process.Kill())
					status = 128 + 9
				case "SIGTERM":
					require.NoError(t, c.cmd.Process.Signal(syscall.SIGTERM))
					status = 128 + 15
				}
				require.Equal(t, status, c.exit())
				s.requireNothing(t, c.cmd.Process.Pid)
			})
		}
	}
}
