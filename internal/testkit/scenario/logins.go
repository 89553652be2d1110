package scenario

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/mcp/proxy"
)

// checkLoginAnswer asserts the answer that says that the login is not valid.
func checkLoginAnswer(t testing.TB, m Message) {
	t.Helper()
	require.NotNil(t, m.Result)
	assert.True(t, m.failed())
	assert.Equal(t, CodeLogin, m.field("code"))
	assert.Equal(t, "reauthenticate_and_restart", m.field("action"))
	assert.Equal(t, m.text(), m.field("content"))
	for _, token := range []string{"codex logout", "codex login", "codex exec", "restart"} {
		assert.Contains(t, m.text(), token)
	}
}

// CodeLogin is the code of a login that was refused.
const CodeLogin = "codex_auth_invalidated"

func logins(l *table) {
	cfg := Settings{Times: quick}
	l.scenario("157 158 160 an event says so", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""), TurnCall(4, ""))
		b.says(Unauthorized(3))
		assert.Empty(t, b.output(), "the event is hidden")
		b.says(FailedTurn(3, Secret))
		out := b.output()
		assert.NotContains(t, out, Secret)
		assert.Contains(t, out, `"threadId":"T1"}`)
		for i, tool := range []string{"codex", "codex-start"} {
			id := fmt.Sprint(10 + i)
			b.send(ToolLine(id, tool, `{"prompt":"p","cwd":"/ws","sandbox":"read-only"}`))
			checkLoginAnswer(t, b.answers()[id])
			b.send(ToolLine(id+"0", strings.Replace(tool, "codex", "codex-reply", 1), `{"prompt":"p","threadId":"T1"}`))
			checkLoginAnswer(t, b.answers()[id+"0"])
		}
		b.send(PingLine(`"p"`))
		b.says(`{"jsonrpc":"2.0","id":"p","result":{}}` + "\n")
		b.expect(`{"jsonrpc":"2.0","id":"p","result":{}}`)
		assert.EqualValues(t, 1, b.ask("codex-peek", "{}").field("count"))
		b.says(Native(4, "the sibling"))
		b.expect(Native(4, "the sibling"))
		assert.Equal(t, 2, strings.Count(b.codexGot(), "tools/call"))
		b.rotates()
		b.leave()
		assert.Equal(t, 1, strings.Count(b.stage.Log(), "codex_auth_invalidated: "), "said once")
		b.logsNone(Secret)
		assert.False(t, b.stage.WrittenBack())
	})
	l.scenario("157 the event alone", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.says(Unauthorized(3))
		b.passes(80 * ms)
		checkLoginAnswer(t, b.answers()["3"])
		b.says(FailedTurn(3, Secret))
		assert.Empty(t, b.output())
		b.leave()
	})
	for _, text := range []string{"x refresh_token_invalidated y", "Your REFRESH TOKEN was revoked.", "refresh token has been revoked", "Authentication token has been invalidated"} {
		l.scenario("157 a failed turn says so", cfg, func(t testing.TB, b *Bridge) {
			b.send(TurnCall(3, ""))
			b.says(FailedTurn(3, text+Secret))
			out := b.answers()
			checkLoginAnswer(t, out["3"])
			assert.NotContains(t, out["3"].text(), Secret)
			b.rotates()
			b.leave()
			assert.False(t, b.stage.WrittenBack())
		})
	}
	l.scenario("161 a good turn that speaks of it", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.says(Native(3, "refresh token was revoked"))
		b.expect(Native(3, "refresh token was revoked"))
		b.send(TurnCall(4, ""))
		b.says(FailedTurn(4, "another failure: 401 from a server of the workspace"))
		b.expect(FailedTurn(4, "another failure: 401 from a server of the workspace"))
		b.rotates()
		b.leave()
		assert.True(t, b.stage.WrittenBack())
	})
	l.scenario("161 a failed turn of more than 10 MiB is not searched", Settings{}, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		long := FailedTurn(3, strings.Repeat("x", proxy.MaxLine/2+1)+" refresh token was revoked")
		b.saysLater(long)
		b.streamed(long)
		b.send(TurnCall(4, ""))
		b.says(Native(4, "four"))
		b.expect(Native(4, "four"))
		b.rotates()
		b.leave()
		b.logsNone(CodeLogin)
		assert.True(t, b.stage.WrittenBack())
	})
	l.scenario("157 not of this process's turns", cfg, func(t testing.TB, b *Bridge) {
		b.says(Unauthorized(77))
		b.expect(Unauthorized(77))
		b.rotates()
		b.leave()
		assert.True(t, b.stage.WrittenBack())
	})
	l.scenario("162 at Codex's exit", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.says(Unauthorized(3) + strings.TrimSpace(FailedTurn(3, Secret)))
		b.exits(0)
		out := b.answers()
		checkLoginAnswer(t, out["3"])
		b.ends(0)
	})
	l.scenario("162 at Codex's exit, inside half an answer", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.says(Unauthorized(3) + `{"jsonrpc":"2.0","id":3,"result":{"content":"` + Secret)
		assert.Empty(t, b.output())
		b.diesInLine()
	})
	l.scenario("159 cancelled inside a half frame", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""), CancelLine(3))
		b.says(Unauthorized(3) + `{"jsonrpc":"2.0","id":3,`)
		b.rotates()
		b.exits(0)
		assert.NotContains(t, b.output(), "auth")
		b.ends(0)
		assert.False(t, b.stage.WrittenBack())
	})
	l.scenario("158 of a call that was given up", cfg, func(t testing.TB, b *Bridge) {
		b.send(TurnCall(3, ""))
		b.passes(300 * ms)
		b.output()
		b.says(Unauthorized(3))
		assert.Empty(t, b.output())
		b.leave()
		assert.False(t, b.stage.WrittenBack())
	})
}

// diesInLine ends Codex in a half line and asserts that the one answer is that
// of the login.
func (b *Bridge) diesInLine() {
	b.Helper()
	b.rotates()
	b.exits(0)
	out := b.output()
	assert.Equal(b, 1, strings.Count(out, CodeLogin))
	b.ends(0)
}
