package codex

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func script(steps ...string) string { return "[" + strings.Join(steps, ",") + "]" }

const started = `{"do":"event","type":"task_started"}`

// quick are variables that make the bridge's times short.
var quick = []string{"MCP_AGENTS_CODEX_CANCEL_GRACE_MS=300", "MCP_AGENTS_CODEX_CLIENT_GONE_GRACE_MS=300", "MCP_AGENTS_CODEX_STATUS_INTERVAL_MS=20"}

func TestCancelCostsOneCall(t *testing.T) {
	onBothRuntimes(t, func(t *testing.T, s *setting) {
		s.env = quick
		c := s.start(t)
		// It goes on after the cancel and answers late.
		deaf := c.turn(script(started, `{"do":"until-cancelled"}`, `{"do":"wait","ms":800}`, `{"do":"answer","text":"late"}`), nil)
		other := c.turn(script(started, `{"do":"wait","ms":600}`, `{"do":"answer","text":"fine"}`), nil)
		c.within(30*time.Second, func(r reply) bool {
			return r.Method == "notifications/progress" && r.Params.ProgressToken == float64(deaf)
		})
		c.cancel(deaf)
		peek := c.ask("codex-peek", map[string]any{})
		assert.EqualValues(t, 1, peek.field("canceling"))
		c.says("NOT confirmed stopped")
		assert.EqualValues(t, 1, c.ask("codex-peek", map[string]any{}).field("abandonedTurnsProcessWide"))
		assert.Equal(t, "fine", c.answer(other).text())
		c.says("abandoned codex turn finished after")
		assert.EqualValues(t, 0, c.ask("codex-peek", map[string]any{}).field("abandonedTurnsProcessWide"))
		assert.Zero(t, c.answers(deaf), "nothing answers a cancelled call")
		require.Zero(t, c.leave(20*time.Second))
	})
}

func TestIdleTimeoutOfOneCall(t *testing.T) {
	onBothRuntimes(t, func(t *testing.T, s *setting) {
		s.env = quick
		s.args = []string{"--codex_idle_timeout", "2"}
		c := s.start(t)
		silent := c.turn(script(started, `{"do":"stall"}`), nil)
		var busy []string
		for range 20 {
			busy = append(busy, `{"do":"event","type":"token_count"}`, `{"do":"wait","ms":200}`)
		}
		other := c.turn(script(append(busy, `{"do":"answer","text":"fine"}`)...), nil)
		r := c.answer(silent)
		require.NotNil(t, r.Error)
		assert.Equal(t, -32001, r.Error.Code)
		assert.Contains(t, r.Error.Message, "request idle timeout (2s)")
		assert.Contains(t, r.Error.Message, "stayed connected")
		assert.Zero(t, c.answers(other))
		assert.Equal(t, "fine", c.answer(other).text())
		require.Zero(t, c.leave(20*time.Second))
		assert.Equal(t, 1, c.answers(silent))
	})
}

func TestJobWithPagedResult(t *testing.T) {
	onBothRuntimes(t, func(t *testing.T, s *setting) {
		s.env = quick
		c := s.start(t)
		id, status := c.job(script(started, `{"do":"answer-bytes","bytes":100000}`), 30*time.Second)
		require.Equal(t, "completed", status.field("state"))
		text, pages := c.result(id)
		assert.Equal(t, strings.Repeat("x", 100000), text)
		assert.Equal(t, 4, pages)
		require.Zero(t, c.leave(20*time.Second))
		assert.NotContains(t, c.stderr.String(), "mcp-agents/job/")
	})
}

func TestLoginIsRefused(t *testing.T) {
	onBothRuntimes(t, func(t *testing.T, s *setting) {
		s.env = quick
		c := s.start(t)
		r := c.answer(c.turn(script(started, `{"do":"fail","text":"Your refresh token was revoked. provider-text"}`), nil))
		assert.True(t, r.Result.IsError)
		assert.Equal(t, "codex_auth_invalidated", r.field("code"))
		assert.NotContains(t, r.text(), "provider-text")
		r = c.answer(c.turn("again", nil))
		assert.Equal(t, "codex_auth_invalidated", r.field("code"))
		assert.EqualValues(t, 0, c.ask("codex-peek", map[string]any{}).field("count"))
		require.Zero(t, c.leave(20*time.Second))
		assert.Equal(t, 1, strings.Count(c.stderr.String(), "codex_auth_invalidated: "))
	})
}

func TestHalfFrameNeverEnded(t *testing.T) {
	onBothRuntimes(t, func(t *testing.T, s *setting) {
		s.env = quick
		s.args = []string{"--codex_idle_timeout", "1.5"}
		c := s.start(t)
		id := c.turn(script(`{"do":"frame","text":"{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{"}`, `{"do":"stall"}`), nil)
		r := c.answer(id)
		assert.Equal(t, -32001, r.Error.Code)
		<-c.exited
		assert.Equal(t, 1, c.cmd.ProcessState.ExitCode())
		assert.Equal(t, 1, c.answers(id))
	})
}
