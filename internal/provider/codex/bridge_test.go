package codex

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/relay"
	"mcpagents/internal/wire"
)

func aborted(id any, reason string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"error":{"code":-32001,"message":"mcp-agents: codex pass-through aborted before responding (%s); `+
		`the request was still open: edits that it made are in the working tree, verify it before you repeat the request."}}`, id, reason)
}

func TestPassThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		codex := &fakeCodex{script: handshakeSteps(
			step{on: "tools/list", out: nativeList(t) + "\n"},
			step{on: "tools/call", out: `{"method":"codex/event","params":{"_meta":{"requestId":3}}}` + "\n" + nativeAnswer},
		)}
		b := startBridge(t, Config{}, launched{codex: codex})
		start := time.Now()
		b.read()
		b.send(initializeLine)
		b.expect(withID(nativeInitialize, 1))
		b.send(initializedLine, listLine)
		b.expect(curatedList(t, 2))
		b.send(callLine)
		b.expect(`{"method":"codex/event","params":{"_meta":{"requestId":3}}}`, withID(nativeAnswer, 3))
		b.disconnect()
		b.end(0)
		assert.Zero(t, time.Since(start), "codex ends at the end of its input, not of the grace")
		assert.Equal(t, strings.Join([]string{initializeLine, initializedLine, listLine, callLine, ""}, "\n"), codex.got())
	})
}

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

func TestStreamsStayByteForByte(t *testing.T) {
	t.Run("143 151 152 154 from codex B12 B41", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			codex := &fakeCodex{script: handshakeSteps(step{out: recorded()}, step{on: "tools/list", out: nativeList(t) + "\n"})}
			b := startBridge(t, Config{}, launched{codex: codex})
			b.read()
			b.send(initializeLine)
			require.True(t, withID(nativeInitialize, 1)+recorded() == b.output(), "the stream was changed")
			b.send(listLine)
			b.expect(curatedList(t, 2))
			b.disconnect()
			b.end(0)
		})
	})
	t.Run("from the client", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			codex := &fakeCodex{script: handshakeSteps()}
			b := startBridge(t, Config{}, launched{codex: codex})
			b.read()
			stream := initializeLine + "\n\n\r\n[ ]\nnot json\n\xff\n" +
				`{"id":null,"method":"x"}` + "\n" + `{ "id" : 0,"result":{"decision":"approved","n":1e400}}` + "\r\n" +
				`{"jsonrpc":"2.0","id":"3","method":"x/y","params":{"n":12345678901234567890}}` + "\n" +
				`{"method":"notifications/cancelled","params":{"requestId":12}}` + "\n" +
				`{"big":"` + strings.Repeat("é", 5<<19) + `"}` + "\n" + `{"method":"last, without LF"}`
			_, err := io.WriteString(b.in, stream)
			require.NoError(t, err)
			b.disconnect()
			b.end(0)
			want := stream + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"3","reason":"mcp-agents: client disconnected"}}` + "\n"
			assert.True(t, want == codex.got(), "the stream was changed")
		})
	})
	t.Run("145 two lists", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			codex := &fakeCodex{script: handshakeSteps()}
			b := startBridge(t, Config{}, launched{codex: codex})
			b.read()
			b.send(initializeLine, listLine, strings.Replace(listLine, `"id":2`, `"id":"two"`, 1))
			b.output()
			b.says(withID(anyList(t), `"two"`) + withID(anyList(t), 2))
			b.expect(curatedList(t, `"two"`), curatedList(t, 2))
			b.leave()
		})
	})
	t.Run("144 byte by byte", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var steps []step
			for _, c := range strings.SplitAfter(strings.ReplaceAll(nativeList(t), `"id":2`, `"id":2 `)+"\n", "") {
				steps = append(steps, step{out: c})
			}
			steps[0].on = "tools/list"
			codex := &fakeCodex{script: handshakeSteps(steps...)}
			b := startBridge(t, Config{}, launched{codex: codex})
			b.read()
			b.send(initializeLine, listLine)
			assert.Contains(t, b.output(), `"additionalProperties":false},"outputSchema"`)
			b.disconnect()
			b.end(0)
		})
	})
}

func TestFramedClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		codex := &fakeCodex{script: handshakeSteps(
			step{on: `"a"`, out: `{"method":"n"}` + "\n" + nativeAnswer},
			step{on: `"b"`, out: `{"jsonrpc":"2.0","id":"b","result":"` + strings.Repeat("x", 11<<20) + `"}` + "\n" +
				`{"jsonrpc":"2.0","id":"c","result":"` + strings.Repeat("x", 17<<20) + `"}` + "\n" + `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"},
		)}
		b := startBridge(t, Config{}, launched{codex: codex})
		b.read()
		frame := func(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }
		send := func(s string) { io.WriteString(b.in, s); synctest.Wait() }
		send(frame(initializeLine))
		require.Equal(t, frame(strings.TrimSpace(withID(nativeInitialize, 1))), b.output())
		send(frame("{\"id\":\"a\",\r\n\"method\":\"x\",\"p\":\"\xff\"}"))
		require.Equal(t, frame(`{"method":"n"}`)+frame(strings.TrimSpace(withID(nativeAnswer, `"a"`))), b.output())
		assert.Contains(t, codex.got(), "{\"id\":\"a\",  \"method\":\"x\",\"p\":\"\xff\"}\n", "a frame with line breaks is one line")
		send(`{"id":1,"method":"as/line"}` + "\n" + frame(`{"id":"c","method":"x"}`) + frame(`{"id":"b","method":"x"}`))
		out := b.output()
		assert.True(t, strings.HasPrefix(out, "Content-Length: 115343"), "an answer over 10 MiB is framed")
		assert.Contains(t, out, `{"jsonrpc":"2.0","id":"c","error":{"code":-32603,`, "one over 16 MiB is replaced")
		assert.True(t, strings.HasSuffix(out, `}{"jsonrpc":"2.0","id":1,"result":{}}`+"\n"), "each answer in the mode of its request")
		b.disconnect()
		b.end(0)
	})
}

func TestInvalidCalls(t *testing.T) {
	const want = `{"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"mcp-agents: invalid arguments for codex","data":{"toolName":"codex",` +
		`"allowedArguments":["prompt","cwd","sandbox","model","model_reasoning_effort","allow_subagents","goal"],"requiredArguments":["prompt","cwd","sandbox"],` +
		`"issues":[{"argument":"config","problem":"is not supported"},{"argument":"cwd","problem":"must be an absolute path"}]}}}`
	cancel := `{"method":"notifications/cancelled","params":{"requestId":9}}`
	t.Run("109 117 beside a valid call, cancel after delivery", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			codex := &fakeCodex{script: handshakeSteps(step{on: "tools/call", out: `{"method":"half`}, step{on: "go", out: `"}` + "\n" + withID(nativeAnswer, 3)})}
			b := startBridge(t, Config{}, launched{codex: codex})
			b.read()
			b.send(initializeLine)
			b.send(callLine, badCallLine)
			b.expect(withID(nativeInitialize, 1), want)
			b.send(cancel, strings.Replace(badCallLine, `"id":9,`, "", 1), strings.Replace(badCallLine, `"id":9,`, `"id":null,`, 1), `{"method":"go"}`)
			b.expect(`{"method":"half"}`, withID(nativeAnswer, 3))
			b.disconnect()
			b.end(0)
			assert.Equal(t, strings.Join([]string{initializeLine, callLine, `{"method":"go"}`, ""}, "\n"), codex.got(),
				"nothing of an invalid call reaches codex")
			assert.Contains(t, b.log.String(), "rejected invalid codex call; fields: config, cwd")
			assert.Equal(t, 2, strings.Count(b.log.String(), "dropped invalid codex notification; fields: config, cwd"))
			assert.NotContains(t, b.log.String(), secret)
		})
	})
	t.Run("117 cancelled before delivery", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			codex := &fakeCodex{script: handshakeSteps()}
			b := startBridge(t, Config{}, launched{codex: codex})
			b.send(initializeLine) // nobody reads yet
			b.send(badCallLine)
			b.send(cancel)
			b.read()
			b.expect(withID(nativeInitialize, 1))
			b.disconnect()
			b.end(0)
			assert.Equal(t, initializeLine+"\n", codex.got())
		})
	})
	t.Run("117 after half a line that streams", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			long := `{"long":"` + strings.Repeat("x", relay.MaxLine)
			codex := &fakeCodex{script: handshakeSteps(step{out: long}, step{on: "go", out: "\"}\n"})}
			b := startBridge(t, Config{}, launched{codex: codex})
			b.read()
			b.send(initializeLine)
			b.send(badCallLine)
			require.True(t, withID(nativeInitialize, 1)+long == b.output(), "no byte of ours in a native line")
			b.send(`{"method":"go"}`)
			b.expect(`"}`, want)
			b.disconnect()
			b.end(0)
		})
	})
}

// A valid call whose id is null or absent is a notification to us, as it is to
// Codex, which judges it: it goes through untouched, and nobody waits for it.
func TestCallsWithoutUsableIDAreNotTracked(t *testing.T) {
	for _, tt := range []struct{ name, call string }{
		{"null", strings.Replace(callLine, `"id":3`, `"id":null`, 1)},
		{"absent", strings.Replace(callLine, `"id":3,`, "", 1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				codex := &fakeCodex{script: handshakeSteps(step{on: "die", exit: exits(7)})}
				b := startBridge(t, Config{Times: Times{Idle: time.Second, Hard: 2 * time.Second}}, launched{codex: codex})
				b.read()
				b.send(initializeLine)
				b.output()
				b.send(tt.call)
				time.Sleep(time.Minute) // of the bubble's clock: no deadline holds for it
				b.expect()
				b.send(callLine) // control: a call with an id is open when Codex dies
				b.send(`{"method":"die"}`)
				b.expect(aborted(3, "codex exited with code 7"))
				b.end(7)
				assert.Equal(t, strings.Join([]string{initializeLine, tt.call, callLine, `{"method":"die"}`, ""}, "\n"), codex.got())
				assert.NotContains(t, b.log.String(), "dropped invalid")
			})
		})
	}
}

func TestOversizeAndDeepMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		codex := &fakeCodex{script: handshakeSteps()}
		b := startBridge(t, Config{MaxMessage: 1 << 20}, launched{codex: codex})
		b.read()
		b.send(initializeLine)
		b.output()
		b.send(`{"id":"big","method":"x","p":"`+strings.Repeat("x", 1<<20)+`"}`,
			`{"method":"notification","p":"`+strings.Repeat("x", 1<<20)+`"}`,
			`{"id":5,"method":"x","p":`+strings.Repeat("[", 10001)+strings.Repeat("]", 10001)+`}`,
			`{"id":"mcp-agents/codex/initialize/1","method":"x"}`)
		out := strings.Split(b.output(), "\n")
		require.Len(t, out, 4)
		assert.Regexp(t, `"id":"big","error":\{"code":-32600,.*too long`, out[0])
		assert.Regexp(t, `"id":5,"error":\{"code":-32600,.*too deep`, out[1])
		assert.Regexp(t, `"id":"mcp-agents/codex/initialize/1","error":\{"code":-32600,.*reserved`, out[2])
		b.disconnect()
		b.end(0)
		assert.Equal(t, initializeLine+"\n", codex.got())
	})
}

func TestTransformedCallReachesCodex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		codex := &fakeCodex{script: handshakeSteps()}
		b := startBridge(t, Config{Goal: "srv"}, launched{codex: codex})
		b.read()
		b.send(initializeLine, callLine)
		assert.Contains(t, codex.got(), `"sandbox":"read-only","developer-instructions":"`+lead+`\nsrv"}}}`+"\n", "99")
		assert.Contains(t, b.log.String(), "injected server goal into developer-instructions")
		b.disconnect()
		b.end(0)
	})
}

func TestDeathAfterInitialize(t *testing.T) {
	const cancelled = `{"method":"notifications/cancelled","params":{"requestId":4}}`
	list := nativeList(t)
	tests := []struct {
		name string
		out  string
		exit *wire.Exit
		code int
		want []string
	}{
		{"212 exit in the middle of a call", "", exits(0), 0, []string{aborted(3, "codex exited with code 0")}},
		{"1.7 its own code", "", exits(7), 7, []string{aborted(3, "codex exited with code 7")}},
		{"1.7 KILL", "", &wire.Exit{Code: 137, Signal: 9, Reason: wire.ReasonSignal}, 137, []string{aborted(3, "codex killed by SIGKILL")}},
		{"1.7 another signal", "", &wire.Exit{Code: 139, Signal: 11, Reason: wire.ReasonSignal}, 128, []string{aborted(3, "codex killed by SIGSEGV")}},
		{"memory is named", "", &wire.Exit{Code: 137, Signal: 9, Reason: wire.ReasonMemory}, 137,
			[]string{aborted(3, "codex was killed because its sandbox ran out of memory; raise --memory")}},
		{"149 part of a frame", `{"jsonrpc":"2.0","id":3,"resu`, exits(1), 1,
			[]string{`{"jsonrpc":"2.0","id":3,"resu`, aborted(3, "codex exited with code 1")}},
		{"150 complete without LF", strings.TrimSpace(withID(nativeAnswer, 3)), exits(1), 1, []string{withID(nativeAnswer, 3)}},
		{"150 list without LF is rewritten", strings.Replace(list, `"id":2`, `"id":5`, 1), exits(1), 1,
			[]string{curatedList(t, 5), aborted(3, "codex exited with code 1")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				codex := &fakeCodex{script: handshakeSteps(step{on: "die", out: tt.out, exit: tt.exit})}
				b := startBridge(t, Config{}, launched{codex: codex})
				b.read()
				b.send(initializeLine, callLine, `{"id":4,"method":"x"}`, cancelled)
				if strings.Contains(tt.name, "list") {
					b.send(`{"id":5,"method":"tools/list"}`)
				}
				b.output()
				b.send(`{"method":"die"}`)
				b.expect(tt.want...)
				b.end(tt.code)
				assert.Equal(t, 1, b.launches, "no second Codex within one connection")
				assert.Contains(t, b.log.String(), "codex passthrough finalize: ")
			})
		})
	}
}

func TestDeathInPartOfFrame(t *testing.T) {
	t.Run("153 trailing part after the result stays raw", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			codex := &fakeCodex{script: handshakeSteps(step{on: "tools/call", out: nativeAnswer + `{"method":"tr`, exit: exits(0)})}
			b := startBridge(t, Config{}, launched{codex: codex})
			b.read()
			b.send(initializeLine, callLine)
			assert.Equal(t, withID(nativeInitialize, 1)+withID(nativeAnswer, 3)+`{"method":"tr`, b.output())
			b.end(0)
		})
	})
	t.Run("149 in a long frame", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			long := `{"jsonrpc":"2.0","id":3,"result":"` + strings.Repeat("x", relay.MaxLine)
			codex := &fakeCodex{script: handshakeSteps(step{on: "tools/call", out: long, exit: exits(1)})}
			b := startBridge(t, Config{}, launched{codex: codex})
			b.read()
			b.send(initializeLine, callLine)
			want := withID(nativeInitialize, 1) + long + "\n" + aborted(3, "codex exited with code 1") + "\n"
			assert.True(t, want == b.output(), "one error behind an inserted LF")
			b.end(1)
		})
	})
}

func TestReusedIDEndsBridge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		codex := &fakeCodex{script: handshakeSteps()}
		b := startBridge(t, Config{}, launched{codex: codex})
		b.read()
		b.send(initializeLine, callLine, `{"id":"3","method":"not/the/same/id"}`)
		b.output()
		b.send(`{"id":3,"method":"again"}`)
		reason := "request id 3 was reused while it was in flight"
		b.expect(aborted(3, reason), aborted(`"3"`, reason))
		b.end(1)
		assert.NotContains(t, codex.got(), "again")
	})
}

func TestCancelIsForwarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		codex := &fakeCodex{script: handshakeSteps()}
		b := startBridge(t, Config{}, launched{codex: codex})
		b.read()
		cancel := `{"method":"notifications/cancelled", "params":{"requestId":3,"reason":"é"}}`
		b.send(initializeLine, callLine, cancel)
		b.expect(withID(nativeInitialize, 1))
		b.disconnect()
		b.end(0)
		ours := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3,"reason":"mcp-agents: client cancelled the request"}}`
		assert.Equal(t, strings.Join([]string{initializeLine, callLine, ours, cancel, ""}, "\n"), codex.got())
	})
}

func TestClientDisconnects(t *testing.T) {
	t.Run("open requests are cancelled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			codex := &fakeCodex{script: handshakeSteps(step{on: "disconnected", out: `{"method":"last words"}` + "\n", exit: exits(5)})}
			b := startBridge(t, Config{}, launched{codex: codex})
			b.read()
			b.send(initializeLine, callLine)
			b.output()
			b.disconnect()
			b.expect(`{"method":"last words"}`)
			b.end(5)
			assert.Contains(t, codex.got(), `"params":{"requestId":3,"reason":"mcp-agents: client disconnected"}}`)
		})
	})
	t.Run("187 codex that does not end is destroyed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			codex := &fakeCodex{script: []step{{out: withID(nativeInitialize, 1)}}, deaf: true}
			b := startBridge(t, Config{ClientGoneGrace: 7 * time.Second}, launched{codex: codex})
			b.read()
			b.send(initializeLine)
			b.send(callLine) // codex does not read it
			start := time.Now()
			b.disconnect()
			b.end(0)
			assert.Equal(t, 7*time.Second, time.Since(start))
		})
	})
	t.Run("during the launch", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := startBridge(t, Config{}, launched{gate: make(chan struct{}), codex: &fakeCodex{}})
			b.read()
			start := time.Now()
			b.send(initializeLine, callLine)
			b.disconnect()
			b.expect(localInitialize)
			b.end(0)
			assert.Less(t, time.Since(start), time.Second)
		})
	})
}

func TestSignalAndBrokenPipe(t *testing.T) {
	t.Run("1.7 TERM", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := startBridge(t, Config{}, launched{codex: &fakeCodex{script: handshakeSteps()}})
			b.read()
			b.send(initializeLine, callLine)
			b.output()
			b.cancel(Signal(15))
			assert.Empty(t, b.output(), "no errors for open requests")
			b.end(143)
		})
	})
	t.Run("1.7 TERM during the launch", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := startBridge(t, Config{}, launched{gate: make(chan struct{})})
			synctest.Wait()
			b.cancel(Signal(2))
			b.end(130)
		})
	})
	t.Run("1.7 EPIPE", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := startBridge(t, Config{}, launched{codex: &fakeCodex{script: handshakeSteps()}})
			b.outR.CloseWithError(syscall.EPIPE)
			b.send(initializeLine)
			b.end(0)
			assert.NotContains(t, b.log.String(), "level=ERROR")
		})
	})
}

func TestSandboxThatCannotBeDestroyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inR, inW := io.Pipe()
		never, unblock := io.Pipe()
		child := &Child{Stdin: discard{}, Stdout: never, Stderr: strings.NewReader(""),
			Wait:  func(ctx context.Context) (wire.Exit, error) { <-ctx.Done(); return wire.Exit{}, ctx.Err() },
			Close: func(context.Context) error { return errors.New("engine is gone") }}
		log := &syncBuffer{}
		code := make(chan int)
		start := time.Now()
		go func() {
			code <- Run(t.Context(), Config{Launch: func(context.Context) (*Child, error) { return child, nil },
				Log: slog.New(slog.NewTextHandler(log, nil))}, inR, io.Discard)
		}()
		inW.Close()
		assert.Equal(t, 0, <-code)
		assert.LessOrEqual(t, time.Since(start), DefaultClientGoneGrace+closeTime+time.Second, "it does not hang")
		assert.Contains(t, log.String(), "engine is gone")
		unblock.Close()
	})
}

type discard struct{ io.Writer }

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }

func TestClientThatNeverReads(t *testing.T) {
	t.Run("its input is read on, codex is held back", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			flood := make([]step, 200)
			for i := range flood {
				flood[i].out = `{"flood":"` + strings.Repeat("x", 100<<10) + `"}` + "\n"
			}
			codex := &fakeCodex{script: handshakeSteps(append(flood, step{out: "end\n"})...)}
			b := startBridge(t, Config{}, launched{codex: codex})
			b.send(initializeLine)
			for range 100 {
				b.send(`{"method":"still read"}`) // io.Pipe: returns when the bridge took it
			}
			assert.Equal(t, initializeLine+"\n", codex.got(), "codex still writes its flood")
			b.read()
			assert.True(t, strings.HasSuffix(b.output(), "end\n"), "151 nothing is lost")
			assert.Equal(t, 100, strings.Count(codex.got(), "still read"))
			b.disconnect()
			b.end(0)
		})
	})
	t.Run("one that only asks is given up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			codex := &fakeCodex{script: handshakeSteps()}
			b := startBridge(t, Config{}, launched{codex: codex})
			id := strings.Repeat("i", 1<<20)
			for i := range 20 {
				_, err := fmt.Fprintf(b.in, `{"id":"mcp-agents/%d%s","method":"x"}`+"\n", i, id)
				if err != nil {
					break
				}
			}
			b.end(1)
			assert.Contains(t, b.log.String(), "does not read")
		})
	})
}

func TestCodexThatNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		codex := &fakeCodex{script: []step{{out: withID(nativeInitialize, 1)}}, deaf: true}
		b := startBridge(t, Config{}, launched{codex: codex})
		b.read()
		b.send(initializeLine)
		b.output()
		big := strings.Repeat("x", 15<<20) // as no JSON it is quick to look at
		for range 4 {
			b.send(big)
		}
		b.send(`{"id":"a","method":"x"}`, big, `{"id":"b","method":"x","params":"`+big[:5<<20]+`"}`, `{"id":"c","method":"x"}`)
		out := b.output()
		assert.Equal(t, 1, strings.Count(out, "-32001"), "beyond 64 MiB a message is refused, alone")
		assert.Contains(t, out, `"id":"b","error"`)
		assert.Contains(t, b.log.String(), "codex has not read those before it")
		b.send(badCallLine)
		assert.Contains(t, b.output(), "-32602", "the client is still served")
		b.cancel(Signal(1))
		b.end(129)
	})
}

// TestLogsHoldNoModelOutput looks at every line above debug.
func TestLogsHoldNoModelOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		codex := &fakeCodex{script: handshakeSteps(step{on: "tools/call", err: secret + "\n", out: `{"x":"` + secret + `"}` + "\n" + secret, exit: exits(1)})}
		b := startBridge(t, Config{}, launched{codex: codex})
		b.read()
		b.send(initializeLine, strings.Replace(callLine, `"hi"`, `"`+secret+`"`, 1))
		assert.Equal(t, 2, bytes.Count([]byte(b.output()), []byte(secret)), "the client gets it")
		b.end(1)
		assert.NotContains(t, b.log.String(), secret)
	})
}
