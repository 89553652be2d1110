package codex

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/testkit/frontend"
	"mcpagents/internal/testkit/images"
)

// realCodex is a setting with the real Codex, and the scripted model in a
// container without any network, whose network namespace Codex joins.
func realCodex(t *testing.T, modelArgs ...string) *setting {
	t.Helper()
	image := images.Codex(t)
	m := frontend.StartModel(t, built.agents, image, modelArgs...)
	s := newSetting(t, "docker", image)
	if os.Getuid() == 0 {
		require.NoError(t, os.Chown(s.workspace, 1000, 1000))
	}
	s.args = []string{"--network", m.Network, "--model_base_url", m.URL}
	// A cancelled Codex 0.153.4 does not end with its input.
	s.env = []string{"MCP_AGENTS_CODEX_CLIENT_GONE_GRACE_MS=500"}
	return s
}

func TestRealCallWithProgressAndReply(t *testing.T) {
	s := realCodex(t)
	c := s.start(t)
	t.Run("277 119 tools", func(t *testing.T) {
		r := c.answer(c.request("tools/list", nil))
		var names []string
		for _, tool := range r.Result.Tools {
			names = append(names, tool["name"].(string))
		}
		assert.Equal(t, []string{"codex", "codex-reply", "codex-start", "codex-reply-start", "codex-status", "codex-commentary", "codex-result", "codex-cancel", "codex-peek"}, names)
	})
	var thread string
	t.Run("279 166 178 a writing call tells what it does", func(t *testing.T) {
		id := c.turn("[[exec: echo written > file.txt; cat file.txt]] [[text: first]]", nil)
		r := c.answer(id)
		require.Nil(t, r.Error)
		assert.Equal(t, "first", r.text())
		thread, _ = r.field("threadId").(string)
		assert.NotEmpty(t, thread)
		told := c.told(id)
		require.NotEmpty(t, told)
		assert.Equal(t, "Codex: started", told[0])
		b, err := os.ReadFile(filepath.Join(s.workspace, "file.txt"))
		require.NoError(t, err)
		assert.Equal(t, "written\n", string(b))
	})
	t.Run("126 a reply to its thread", func(t *testing.T) {
		id := c.call("codex-reply", map[string]any{"prompt": "[[execlong: sleep 2]] [[text: second]]", "threadId": thread})
		c.within(30*time.Second, func(r reply) bool { return r.Method == "codex/event" && r.Params.Msg.Type == "exec_command_begin" })
		p := c.ask("codex-peek", map[string]any{"threadId": thread})
		require.EqualValues(t, 1, p.field("count"), p.text())
		row := p.field("turns").([]any)[0].(map[string]any)
		assert.Equal(t, s.workspace, row["cwd"])
		assert.Equal(t, true, row["cwdInferred"])
		assert.Equal(t, "second", c.answer(id).text())
	})
	require.Zero(t, c.leave(20*time.Second))
}

func TestRealJobWithPagedResult(t *testing.T) {
	c := realCodex(t).start(t)
	id, status := c.job("[[megabyte: 150000 multibyte]]", 60*time.Second)
	require.Equal(t, "completed", status.field("state"), status.text())
	assert.NotEmpty(t, status.field("threadId"))
	text, pages := c.result(id)
	assert.Len(t, text, 150000)
	assert.Equal(t, (len([]rune(text))+32767)/32768, pages)
	assert.Greater(t, pages, 1)
	require.Zero(t, c.leave(20*time.Second))
}

// A cancelled turn of Codex 0.153.4 ends within milliseconds and is not
// answered, and its command goes on. That is what the bridge says.
func TestRealCancelDuringCommand(t *testing.T) {
	s := realCodex(t)
	c := s.start(t)
	id := c.turn("[[execlong: sleep 3; echo done > after.txt]] [[text: x]]", nil)
	c.event("exec_command_begin")
	begin := time.Now()
	c.cancel(id)
	c.event("turn_aborted")
	assert.Less(t, time.Since(begin), 2*time.Second, "turn_aborted comes at once")
	c.says("NOT confirmed stopped")
	p := c.ask("codex-peek", map[string]any{})
	assert.EqualValues(t, 0, p.field("count"), p.text())
	assert.EqualValues(t, 1, p.field("abandonedTurnsProcessWide"))
	assert.Contains(t, p.text(), "not evidence")
	require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(s.workspace, "after.txt")); return err == nil }, 10*time.Second, 50*time.Millisecond,
		"the command goes on")
	next := c.answer(c.turn("[[text: next]]", nil))
	assert.Equal(t, "next", next.text(), "the bridge lives")
	c.says("abandoned codex turn finished after") // by the event of the command's end
	assert.EqualValues(t, 0, c.ask("codex-peek", map[string]any{}).field("abandonedTurnsProcessWide"))
	assert.Zero(t, c.answers(id), "nothing answers a cancelled call")
	require.Zero(t, c.leave(20*time.Second))
}

func TestRealIdleTimeoutOfOneCall(t *testing.T) {
	s := realCodex(t)
	s.args = append(s.args, "--codex_idle_timeout", "3")
	c := s.start(t)
	silent := c.turn("[[hang]]", nil)
	other := c.turn("[[slow: 6]]", nil)
	r := c.answer(silent)
	require.NotNil(t, r.Error)
	assert.Equal(t, -32001, r.Error.Code)
	assert.Contains(t, r.Error.Message, "request idle timeout (3s)")
	assert.Contains(t, r.Error.Message, "Codex thread: ")
	r = c.answer(other)
	require.Nil(t, r.Error)
	assert.NotEmpty(t, r.text())
	require.Zero(t, c.leave(20*time.Second))
	assert.Contains(t, c.stderr.String(), "NOT confirmed stopped")
	assert.Contains(t, c.stderr.String(), "abandoned codex turn finished after", "turn_aborted was heard")
	assert.Equal(t, 1, c.answers(silent))
}

// A 401 from the endpoint of a key is the turn's own failure: Codex 0.153.4 calls
// it "other" after five tries in about 6.5 s, not "unauthorized". It passes as
// it is, and the next call reaches Codex.
func TestReal401(t *testing.T) {
	s := realCodex(t)
	c := s.start(t)
	t.Run("161 it is no refused login", func(t *testing.T) {
		for range 2 {
			r := c.answer(c.turn("[[status: 401]]", nil))
			require.Nil(t, r.Error)
			assert.True(t, r.Result.IsError)
			assert.Contains(t, r.text(), "401 Unauthorized")
		}
		assert.Equal(t, "fine", c.answer(c.turn("[[text: fine]]", nil)).text())
	})
	assert.EqualValues(t, 0, c.ask("codex-peek", map[string]any{}).field("count"))
	require.Zero(t, c.leave(20*time.Second))
	assert.NotContains(t, c.stderr.String(), "codex_auth_invalidated")
}
