package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/mcp/proxy"
)

// recorded is a stream with what a careless bridge would change.
func recorded() string {
	return `{"jsonrpc": "2.0",  "method":"codex/event","params":{"n":9007199254740993,"e":1e400,"t":"h\u00e9llo héllo \/ \ud83d\ude00 😀"} }` + "\n" +
		"\n\r\n" + "not json at all \x1b[31m\n" + "\xff\xfe invalid UTF-8\n" + `[1,{"id":3}]` + "\n" +
		`{"id":"foreign","result":{}}` + "\n" + `{"id":null,"result":1}` + "\r\n" +
		`{"method":"elicitation/create","id":0,"params":{"message":"ok?"}}` + "\n" +
		`{"big":"` + strings.Repeat("é", 5<<19) + `"}` + "\n" +
		`{"jsonrpc":"2.0","id":77,"result":{"long":"` + strings.Repeat("x", 11<<20) + `"}}` + "\n" +
		`{"tools":[{"name":"codex","description":"d"}]}` + "\n"
}

// streams pass byte for byte.
func streams(l *table) {
	l.scenario("143 151 152 154 from Codex", Settings{}, func(t testing.TB, b *Bridge) {
		b.saysLater(recorded())
		b.streamed(recorded())
		b.send(ListLine)
		b.says(NativeList(2) + "\n")
		b.expect(CuratedList(2))
		b.leave()
	})
	l.scenario("from the client", Settings{}, func(t testing.TB, b *Bridge) {
		before := b.codexGot()
		stream := "\n\r\n[ ]\nnot json\n\xff\n" +
			`{"id":null,"method":"x"}` + "\n" + `{ "id" : 0,"result":{"decision":"approved","n":1e400}}` + "\r\n" +
			`{"jsonrpc":"2.0","id":"3","method":"x/y","params":{"n":12345678901234567890}}` + "\n" +
			`{"method":"notifications/cancelled","params":{"requestId":12}}` + "\n" +
			`{"big":"` + strings.Repeat("é", 5<<19) + `"}` + "\n" + `{"method":"last, without LF"}`
		b.stage.Send(stream)
		b.leave()
		want := before + stream + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"3","reason":"mcp-agents: client disconnected"}}` + "\n"
		assert.True(t, want == b.stage.Got(), "the stream was changed")
	})
	l.scenario("151 a client that does not read", Settings{}, func(t testing.TB, b *Bridge) {
		b.stage.Pause()
		flood := strings.Repeat(`{"flood":"`+strings.Repeat("x", 100<<10)+`"}`+"\n", 200) + "end\n"
		b.saysLater(flood)
		for range 100 {
			b.stage.Send(`{"method":"still read"}` + "\n")
		}
		b.stage.Resume()
		b.streamed(flood)
		assert.Equal(t, 100, strings.Count(b.codexGot(), "still read"), "its input is read on")
		b.leave()
	})
	l.scenario("91 92 a call passes with its id", Settings{}, func(t testing.TB, b *Bridge) {
		b.send(CallLine)
		event := `{"method":"codex/event","params":{"_meta":{"requestId":3}}}`
		b.says(event + "\n" + WithID(NativeAnswer, 3))
		b.expect(event, WithID(NativeAnswer, 3))
		assert.Equal(t, 1, strings.Count(b.codexGot(), CallLine+"\n"))
		b.leave()
	})
	l.scenario("188 a cancel is forwarded", Settings{}, func(t testing.TB, b *Bridge) {
		before := b.codexGot()
		cancel := `{"method":"notifications/cancelled", "params":{"requestId":3,"reason":"é"}}`
		b.send(CallLine, cancel)
		b.expect()
		ours := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3,"reason":"mcp-agents: client cancelled the request"}}`
		assert.Equal(t, before+strings.Join([]string{CallLine, ours, cancel, ""}, "\n"), b.codexGot())
		b.leave()
	})
	l.scenario("185 an id that is used again in flight", Settings{}, func(t testing.TB, b *Bridge) {
		b.send(CallLine, `{"id":"3","method":"not/the/same/id"}`)
		b.output()
		b.send(`{"id":3,"method":"again"}`)
		reason := "request id 3 was reused while it was in flight"
		b.expect(Aborted(3, reason), Aborted(`"3"`, reason))
		b.ends(1)
		assert.NotContains(t, b.stage.Got(), "again")
	})
}

// deaths are Codex's, and its life after the client's.
func deaths(l *table) {
	for _, tt := range []struct {
		name string
		out  string
		die  func(b *Bridge)
		code int
		want []string
	}{
		{"212 exit in the middle of a call", "", func(b *Bridge) { b.exits(0) }, 0, []string{Aborted(3, "codex exited with code 0")}},
		{"212 its own code", "", func(b *Bridge) { b.exits(7) }, 7, []string{Aborted(3, "codex exited with code 7")}},
		{"212 KILL", "", func(b *Bridge) { b.dies(9) }, 137, []string{Aborted(3, "codex killed by SIGKILL")}},
		{"212 another signal", "", func(b *Bridge) { b.dies(11) }, 128, []string{Aborted(3, "codex killed by SIGSEGV")}},
		{"149 part of a frame", `{"jsonrpc":"2.0","id":3,"resu`, func(b *Bridge) { b.exits(1) }, 1,
			[]string{`{"jsonrpc":"2.0","id":3,"resu`, Aborted(3, "codex exited with code 1")}},
		{"150 complete without LF", strings.TrimSpace(WithID(NativeAnswer, 3)), func(b *Bridge) { b.exits(1) }, 1, []string{WithID(NativeAnswer, 3)}},
		{"150 a list without LF is rewritten", NativeList(5), func(b *Bridge) { b.exits(1) }, 1,
			[]string{CuratedList(5), Aborted(3, "codex exited with code 1")}},
	} {
		l.scenario(tt.name, Settings{}, func(t testing.TB, b *Bridge) {
			b.send(CallLine, `{"id":4,"method":"x"}`, `{"method":"notifications/cancelled","params":{"requestId":4}}`)
			if strings.Contains(tt.name, "list") {
				b.send(`{"id":5,"method":"tools/list"}`)
			}
			if tt.out != "" {
				b.says(tt.out)
			}
			tt.die(b)
			b.expect(tt.want...)
			b.ends(tt.code)
			b.logged("codex passthrough finalize: ")
		})
	}
	l.scenario("153 a part behind the result stays as it is", Settings{}, func(t testing.TB, b *Bridge) {
		b.send(CallLine)
		b.says(WithID(NativeAnswer, 3) + `{"method":"tr`)
		b.exits(0)
		assert.Equal(t, WithID(NativeAnswer, 3)+`{"method":"tr`, b.output())
		b.ends(0)
	})
	l.scenario("149 in a frame too long to hold", Settings{}, func(t testing.TB, b *Bridge) {
		b.send(CallLine)
		long := `{"jsonrpc":"2.0","id":3,"result":"` + strings.Repeat("x", proxy.MaxLine)
		b.saysLater(long)
		b.streamed(long)
		b.exits(1)
		b.streamed("\n" + Aborted(3, "codex exited with code 1") + "\n")
		b.ends(1)
	})
	l.scenario("187 Codex that does not end is destroyed", Settings{Gone: 200 * ms}, func(t testing.TB, b *Bridge) {
		b.stage.Do(Step{Do: "deaf"}, false)
		b.send(CallLine) // Codex does not read it
		b.stage.Disconnect()
		start := time.Now()
		b.ends(0)
		assert.GreaterOrEqual(t, time.Since(start), 200*ms)
	})
	l.scenario("187 what it says after the client passes", Settings{}, func(t testing.TB, b *Bridge) {
		b.stage.Do(Step{Do: "deaf"}, false)
		b.stage.Disconnect()
		b.says(`{"method":"last words"}` + "\n")
		b.exits(5)
		b.expect(`{"method":"last words"}`)
		b.ends(5)
	})
}

// answersOfOurs are those to invalid calls.
func answersOfOurs(l *table) {
	const want = `{"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"mcp-agents: invalid arguments for codex","data":{"toolName":"codex",` +
		`"allowedArguments":["prompt","cwd","sandbox","model","model_reasoning_effort","allow_subagents","goal"],"requiredArguments":["prompt","cwd","sandbox"],` +
		`"issues":[{"argument":"config","problem":"is not supported"},{"argument":"cwd","problem":"must be an absolute path"}]}}}`
	cancel := `{"method":"notifications/cancelled","params":{"requestId":9}}`
	long := `{"long":"` + strings.Repeat("x", proxy.MaxLine)
	l.scenario("109 117 beside a valid call, behind half a frame, cancelled after delivery", Settings{}, func(t testing.TB, b *Bridge) {
		before := b.codexGot()
		b.send(CallLine)
		b.says(`{"method":"half`)
		b.send(BadCallLine)
		b.expect(want)
		b.send(cancel, strings.Replace(BadCallLine, `"id":9,`, "", 1), strings.Replace(BadCallLine, `"id":9,`, `"id":null,`, 1))
		b.says(`"}` + "\n" + WithID(NativeAnswer, 3))
		b.expect(`{"method":"half"}`, WithID(NativeAnswer, 3))
		assert.Equal(t, before+CallLine+"\n", b.codexGot(), "nothing of an invalid call reaches codex")
		b.leave()
		b.logged("rejected invalid codex call; fields: config, cwd")
		assert.Equal(t, 2, strings.Count(b.stage.Log(), "dropped invalid codex notification; fields: config, cwd"))
		b.logsNone(Secret)
	})
	l.scenario("117 cancelled before delivery, behind half a line that streams", Settings{}, func(t testing.TB, b *Bridge) {
		before := b.codexGot()
		b.saysLater(long)
		b.streamed(long)
		b.send(BadCallLine)
		b.send(cancel)
		b.says("\"}\n")
		b.expect(`"}`)
		assert.Equal(t, before, b.codexGot())
		b.leave()
	})
	l.scenario("117 after half a line that streams", Settings{}, func(t testing.TB, b *Bridge) {
		b.saysLater(long)
		b.streamed(long)
		b.send(BadCallLine)
		assert.Empty(t, b.output(), "no byte of ours in a native line")
		b.says("\"}\n")
		b.expect(`"}`, want)
		b.leave()
	})
}

// lists are those of tools.
func lists(l *table) {
	l.scenario("118 119 120 132 133 134 135 136 138 139 140 141 142 the list", Settings{}, func(t testing.TB, b *Bridge) {
		b.send(ListLine)
		b.says(NativeList(2) + "\n")
		b.expect(CuratedList(2))
		b.leave()
	})
	l.scenario("137 146 a newer Codex's own choices do not show", Settings{}, func(t testing.TB, b *Bridge) {
		b.send(ListLine)
		drifted := strings.Replace(NativeList(2), `"compact-prompt"`, `"goal":{"type":"object"},"model_reasoning_effort":{"type":"number"},"compact-prompt"`, 1)
		require.NotEqual(t, NativeList(2), drifted)
		b.says(drifted + "\n")
		b.expect(CuratedList(2))
		b.leave()
	})
	l.scenario("144 in pieces", Settings{}, func(t testing.TB, b *Bridge) {
		b.send(ListLine)
		list := NativeList(2) + "\n"
		for i := 0; i < len(list); i += 97 {
			b.stage.Do(Step{Do: "raw", Text: list[i:min(i+97, len(list))]}, false)
		}
		b.expect(CuratedList(2))
		b.leave()
	})
	l.scenario("145 two lists", Settings{}, func(t testing.TB, b *Bridge) {
		b.send(ListLine, strings.Replace(ListLine, `"id":2`, `"id":"two"`, 1))
		b.says(NativeList(`"two"`) + "\n" + NativeList(2) + "\n")
		b.expect(CuratedList(`"two"`), CuratedList(2))
		b.leave()
	})
	for name, answer := range map[string]string{
		"147 one without Codex's tools": `{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"x","description":"codex","inputSchema":{"codex":1}}]}}`,
		"148 one that is no list":       `{"jsonrpc":"2.0","id":2,"result":{"tools":{"name":"codex"}}}`,
		"148 an error":                  `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"codex"}}`,
	} {
		l.scenario(name+" stays as it is", Settings{}, func(t testing.TB, b *Bridge) {
			b.send(ListLine)
			b.says(answer + "\n")
			b.expect(answer)
			b.leave()
		})
	}
}
