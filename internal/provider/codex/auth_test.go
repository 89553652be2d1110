package codex

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func unauthorized(id any) string {
	return event(id, "error", `"message":"`+secret+`","codex_error_info":"unauthorized"`)
}

func failedTurn(id any, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":{"content":[{"type":"text","text":%q}],"isError":true,"structuredContent":{"threadId":"T1","content":%q}}}`+"\n", id, text, text)
}

// checkLoginAnswer asserts the answer that says that the login is not valid.
func checkLoginAnswer(t *testing.T, m message) {
	t.Helper()
	require.NotNil(t, m.Result)
	assert.True(t, m.Result.IsError)
	assert.Equal(t, codeLogin, m.field("code"))
	assert.Equal(t, "reauthenticate_and_restart", m.field("action"))
	assert.Equal(t, m.Result.Content[0].Text, m.field("content"))
	for _, token := range []string{"codex logout", "codex login", "codex exec", "restart"} {
		assert.Contains(t, m.Result.Content[0].Text, token)
	}
}

func TestLoginInvalid(t *testing.T) {
	cfg := Config{Times: quick}
	scenario(t, "157 160 B47 an event says so", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""), turnCall(4, ""))
		b.says(unauthorized(3))
		assert.Empty(t, b.output(), "the event is hidden")
		b.says(failedTurn(3, secret))
		out := b.output()
		assert.NotContains(t, out, secret)
		assert.Contains(t, out, `"threadId":"T1"}`)
		for i, tool := range []string{"codex", "codex-start"} {
			id := fmt.Sprint(10 + i)
			b.send(toolLine(id, tool, `{"prompt":"p","cwd":"/ws","sandbox":"read-only"}`))
			checkLoginAnswer(t, b.answers()[id])
			b.send(toolLine(id+"0", strings.Replace(tool, "codex", "codex-reply", 1), `{"prompt":"p","threadId":"T1"}`))
			checkLoginAnswer(t, b.answers()[id+"0"])
		}
		b.send(pingLine(`"p"`))
		b.says(`{"jsonrpc":"2.0","id":"p","result":{}}` + "\n")
		b.expect(`{"jsonrpc":"2.0","id":"p","result":{}}`)
		assert.EqualValues(t, 1, b.ask("codex-peek", "{}").field("count"))
		b.says(native(4, "the sibling"))
		b.expect(native(4, "the sibling"))
		assert.Equal(t, 2, strings.Count(b.codexGot(), "tools/call"))
		b.leave()
		assert.Equal(t, 1, strings.Count(b.log.String(), "codex_auth_invalidated: "), "said once")
		assert.NotContains(t, b.log.String(), secret)
		assert.Equal(t, 1, b.codexes[0].invalidated, "158 nothing is written back")
	})
	scenario(t, "157 the event alone", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.says(unauthorized(3))
		pass(80 * ms)
		checkLoginAnswer(t, b.answers()["3"])
		b.says(failedTurn(3, secret))
		assert.Empty(t, b.output())
		b.leave()
	})
	for _, text := range []string{"x refresh_token_invalidated y", "Your REFRESH TOKEN was revoked.", "refresh token has been revoked", "Authentication token has been invalidated"} {
		scenario(t, "157 a failed turn says so", cfg, func(t *testing.T, b *testBridge) {
			b.send(turnCall(3, ""))
			b.says(failedTurn(3, text+secret))
			out := b.answers()
			checkLoginAnswer(t, out["3"])
			assert.NotContains(t, out["3"].Result.Content[0].Text, secret)
			b.leave()
			assert.Equal(t, 1, b.codexes[0].invalidated)
		})
	}
	scenario(t, "161 a good turn that speaks of it", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.says(native(3, "refresh token was revoked"))
		b.expect(native(3, "refresh token was revoked"))
		b.send(turnCall(4, ""))
		b.says(failedTurn(4, "another failure: 401 from a server of the workspace"))
		b.expect(failedTurn(4, "another failure: 401 from a server of the workspace"))
		b.leave()
		assert.Zero(t, b.codexes[0].invalidated)
	})
	scenario(t, "157 not of this process's turns", cfg, func(t *testing.T, b *testBridge) {
		b.says(unauthorized(77))
		b.expect(unauthorized(77))
		b.leave()
		assert.Zero(t, b.codexes[0].invalidated)
	})
	scenario(t, "162 at Codex's exit", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.says(unauthorized(3) + strings.TrimSpace(failedTurn(3, secret)))
		b.codexes[0].end(*exits(0), "")
		out := b.answers()
		checkLoginAnswer(t, out["3"])
		b.end(0)
	})
	scenario(t, "162 at Codex's exit, inside half an answer", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		b.says(unauthorized(3) + `{"jsonrpc":"2.0","id":3,"result":{"content":"` + secret)
		pass(10 * ms)
		assert.Empty(t, b.output())
		b.diesInLine()
	})
	scenario(t, "159 cancelled inside a half frame", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""), cancelLine(3))
		b.says(unauthorized(3) + `{"jsonrpc":"2.0","id":3,`)
		b.codexes[0].end(*exits(0), "")
		assert.NotContains(t, b.output(), "auth")
		b.end(0)
		assert.Equal(t, 1, b.codexes[0].invalidated)
	})
	scenario(t, "158 of a call that was given up", cfg, func(t *testing.T, b *testBridge) {
		b.send(turnCall(3, ""))
		pass(300 * ms)
		b.output()
		b.says(unauthorized(3))
		assert.Empty(t, b.output())
		b.leave()
		assert.Equal(t, 1, b.codexes[0].invalidated)
	})
}

// diesInLine ends Codex in a half line and asserts that the one answer is that
// of the login.
func (b *testBridge) diesInLine() {
	b.Helper()
	b.codexes[0].end(*exits(0), "")
	out := b.output()
	assert.Equal(b, 1, strings.Count(out, codeLogin))
	b.end(0)
}
