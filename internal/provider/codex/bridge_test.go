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

	"mcpagents/internal/mcp/proxy"
	"mcpagents/internal/mcp/stdio"
	"mcpagents/internal/sandbox/wire"
	"mcpagents/internal/testkit/frontend"
	"mcpagents/internal/testkit/scenario"
)

func TestFramedClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		codex := &fakeCodex{script: handshakeSteps(
			step{on: `"a"`, out: `{"method":"n"}` + "\n" + scenario.NativeAnswer},
			step{on: `"b"`, out: `{"jsonrpc":"2.0","id":"b","result":"` + strings.Repeat("x", 11<<20) + `"}` + "\n" +
				`{"jsonrpc":"2.0","id":"c","result":"` + strings.Repeat("x", 17<<20) + `"}` + "\n" + `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"},
		)}
		b := startBridge(t, Config{}, launched{codex: codex})
		b.Read()
		frame := func(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }
		send := func(s string) { io.WriteString(b.In, s); synctest.Wait() }
		send(frame(scenario.InitializeLine))
		require.Equal(t, frame(strings.TrimSpace(scenario.WithID(scenario.NativeInitialize, 1))), b.Output())
		send(frame("{\"id\":\"a\",\r\n\"method\":\"x\",\"p\":\"\xff\"}"))
		require.Equal(t, frame(`{"method":"n"}`)+frame(strings.TrimSpace(scenario.WithID(scenario.NativeAnswer, `"a"`))), b.Output())
		assert.Contains(t, codex.got(), "{\"id\":\"a\",  \"method\":\"x\",\"p\":\"\xff\"}\n", "a frame with line breaks is one line")
		send(`{"id":1,"method":"as/line"}` + "\n" + frame(`{"id":"c","method":"x"}`) + frame(`{"id":"b","method":"x"}`))
		out := b.Output()
		assert.True(t, strings.HasPrefix(out, "Content-Length: 115343"), "an answer over 10 MiB is framed")
		assert.Contains(t, out, `{"jsonrpc":"2.0","id":"c","error":{"code":-32603,`, "one over 16 MiB is replaced")
		assert.True(t, strings.HasSuffix(out, `}{"jsonrpc":"2.0","id":1,"result":{}}`+"\n"), "each answer in the mode of its request")
		b.Disconnect()
		b.end(0)
	})
}

// A valid call whose id is null or absent is a notification to us, as it is to
// Codex, which judges it: it goes through untouched, and nobody waits for it.
func TestCallsWithoutUsableIDAreNotTracked(t *testing.T) {
	for _, tt := range []struct{ name, call string }{
		{"null", strings.Replace(scenario.CallLine, `"id":3`, `"id":null`, 1)},
		{"absent", strings.Replace(scenario.CallLine, `"id":3,`, "", 1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				codex := &fakeCodex{script: handshakeSteps(step{on: "die", exit: exits(7)})}
				b := startBridge(t, Config{Times: Times{Idle: time.Second, Hard: 2 * time.Second}}, launched{codex: codex})
				b.Read()
				b.Send(scenario.InitializeLine)
				b.Output()
				b.Send(tt.call)
				time.Sleep(time.Minute) // of the bubble's clock: no deadline holds for it
				b.Expect()
				b.Send(scenario.CallLine) // control: a call with an id is open when Codex dies
				b.Send(`{"method":"die"}`)
				b.Expect(scenario.Aborted(3, "codex exited with code 7"))
				b.end(7)
				assert.Equal(t, strings.Join([]string{scenario.InitializeLine, tt.call, scenario.CallLine, `{"method":"die"}`, ""}, "\n"), codex.got())
				assert.NotContains(t, b.Log.String(), "dropped invalid")
			})
		})
	}
}

func TestOversizeAndDeepMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		codex := &fakeCodex{script: handshakeSteps()}
		b := startBridge(t, Config{MaxMessage: 1 << 20}, launched{codex: codex})
		b.Read()
		b.Send(scenario.InitializeLine)
		b.Output()
		b.Send(`{"id":"big","method":"x","p":"`+strings.Repeat("x", 1<<20)+`"}`,
			`{"method":"notification","p":"`+strings.Repeat("x", 1<<20)+`"}`,
			`{"id":5,"method":"x","p":`+strings.Repeat("[", 10001)+strings.Repeat("]", 10001)+`}`,
			`{"id":"mcp-agents/codex/initialize/1","method":"x"}`)
		out := strings.Split(b.Output(), "\n")
		require.Len(t, out, 4)
		assert.Regexp(t, `"id":"big","error":\{"code":-32600,.*too long`, out[0])
		assert.Regexp(t, `"id":5,"error":\{"code":-32600,.*too deep`, out[1])
		assert.Regexp(t, `"id":"mcp-agents/codex/initialize/1","error":\{"code":-32600,.*reserved`, out[2])
		b.Disconnect()
		b.end(0)
		assert.Equal(t, scenario.InitializeLine+"\n", codex.got())
	})
}

func TestTransformedCallReachesCodex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		codex := &fakeCodex{script: handshakeSteps()}
		b := startBridge(t, Config{Goal: "srv"}, launched{codex: codex})
		b.Read()
		b.Send(scenario.InitializeLine, scenario.CallLine)
		assert.Contains(t, codex.got(), `"sandbox":"read-only","developer-instructions":"`+scenario.Lead+`\nsrv"}}}`+"\n", "99")
		assert.Contains(t, b.Log.String(), "injected server goal into developer-instructions")
		b.Disconnect()
		b.end(0)
	})
}

// The other deaths are scenarios.
func TestDeathOfMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		codex := &fakeCodex{script: handshakeSteps(step{on: "die", exit: &wire.Exit{Code: 137, Signal: 9, Reason: wire.ReasonMemory}})}
		b := startBridge(t, Config{}, launched{codex: codex})
		b.Read()
		b.Send(scenario.InitializeLine, scenario.CallLine)
		b.Output()
		b.Send(`{"method":"die"}`)
		b.Expect(scenario.Aborted(3, "codex was killed because its sandbox ran out of memory; raise --memory"))
		b.end(137)
		assert.Equal(t, 1, b.launches, "no second Codex within one connection")
		assert.Contains(t, b.Log.String(), "codex passthrough finalize: ")
	})
}

func TestClientDisconnects(t *testing.T) {
	t.Run("open requests are cancelled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			codex := &fakeCodex{script: handshakeSteps(step{on: "disconnected", out: `{"method":"last words"}` + "\n", exit: exits(5)})}
			b := startBridge(t, Config{}, launched{codex: codex})
			b.Read()
			b.Send(scenario.InitializeLine, scenario.CallLine)
			b.Output()
			b.Disconnect()
			b.Expect(`{"method":"last words"}`)
			b.end(5)
			assert.Contains(t, codex.got(), `"params":{"requestId":3,"reason":"mcp-agents: client disconnected"}}`)
		})
	})
	t.Run("during the launch", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := startBridge(t, Config{}, launched{gate: make(chan struct{}), codex: &fakeCodex{}})
			b.Read()
			start := time.Now()
			b.Send(scenario.InitializeLine, scenario.CallLine)
			b.Disconnect()
			b.Expect(localInitialize)
			b.end(0)
			assert.Less(t, time.Since(start), time.Second)
		})
	})
}

func TestSignalAndBrokenPipe(t *testing.T) {
	t.Run("1.7 TERM", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := startBridge(t, Config{}, launched{codex: &fakeCodex{script: handshakeSteps()}})
			b.Read()
			b.Send(scenario.InitializeLine, scenario.CallLine)
			b.Output()
			b.Cancel(stdio.Signal(15))
			assert.Empty(t, b.Output(), "no errors for open requests")
			b.end(143)
		})
	})
	t.Run("1.7 TERM during the launch", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := startBridge(t, Config{}, launched{gate: make(chan struct{})})
			synctest.Wait()
			b.Cancel(stdio.Signal(2))
			b.end(130)
		})
	})
	t.Run("1.7 EPIPE", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := startBridge(t, Config{}, launched{codex: &fakeCodex{script: handshakeSteps()}})
			b.Out.CloseWithError(syscall.EPIPE)
			b.Send(scenario.InitializeLine)
			b.end(0)
			assert.NotContains(t, b.Log.String(), "level=ERROR")
		})
	})
}

func TestSandboxThatCannotBeDestroyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inR, inW := io.Pipe()
		never, unblock := io.Pipe()
		child := &Child{Process: proxy.Process{Stdin: discard{}, Stdout: never, Stderr: strings.NewReader(""),
			Wait:  func(ctx context.Context) (wire.Exit, error) { <-ctx.Done(); return wire.Exit{}, ctx.Err() },
			Close: func(context.Context) error { return errors.New("engine is gone") }}}
		log := &frontend.Buffer{}
		code := make(chan int)
		start := time.Now()
		go func() {
			code <- Run(t.Context(), Config{Launch: func(context.Context) (*Child, error) { return child, nil },
				Log: slog.New(slog.NewTextHandler(log, nil))}, inR, io.Discard)
		}()
		inW.Close()
		assert.Equal(t, 0, <-code)
		assert.LessOrEqual(t, time.Since(start), DefaultClientGoneGrace+proxy.CloseTime+time.Second, "it does not hang")
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
			b.Send(scenario.InitializeLine)
			for range 100 {
				b.Send(`{"method":"still read"}`) // io.Pipe: returns when the bridge took it
			}
			assert.Equal(t, scenario.InitializeLine+"\n", codex.got(), "codex still writes its flood")
			b.Read()
			assert.True(t, strings.HasSuffix(b.Output(), "end\n"), "151 nothing is lost")
			assert.Equal(t, 100, strings.Count(codex.got(), "still read"))
			b.Disconnect()
			b.end(0)
		})
	})
	t.Run("one that only asks is given up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			codex := &fakeCodex{script: handshakeSteps()}
			b := startBridge(t, Config{}, launched{codex: codex})
			id := strings.Repeat("i", 1<<20)
			for i := range 20 {
				_, err := fmt.Fprintf(b.In, `{"id":"mcp-agents/%d%s","method":"x"}`+"\n", i, id)
				if err != nil {
					break
				}
			}
			b.end(1)
			assert.Contains(t, b.Log.String(), "does not read")
		})
	})
}

func TestCodexThatNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		codex := &fakeCodex{script: []step{{out: scenario.WithID(scenario.NativeInitialize, 1)}}, deaf: true}
		b := startBridge(t, Config{}, launched{codex: codex})
		b.Read()
		b.Send(scenario.InitializeLine)
		b.Output()
		big := strings.Repeat("x", 15<<20) // as no JSON it is quick to look at
		for range 4 {
			b.Send(big)
		}
		b.Send(`{"id":"a","method":"x"}`, big, `{"id":"b","method":"x","params":"`+big[:5<<20]+`"}`, `{"id":"c","method":"x"}`)
		out := b.Output()
		assert.Equal(t, 1, strings.Count(out, "-32001"), "beyond 64 MiB a message is refused, alone")
		assert.Contains(t, out, `"id":"b","error"`)
		assert.Contains(t, b.Log.String(), "codex has not read those before it")
		b.Send(scenario.BadCallLine)
		assert.Contains(t, b.Output(), "-32602", "the client is still served")
		b.Cancel(stdio.Signal(1))
		b.end(129)
	})
}

// TestLogsHoldNoModelOutput looks at every line above debug.
func TestLogsHoldNoModelOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		codex := &fakeCodex{script: handshakeSteps(step{on: "tools/call", err: scenario.Secret + "\n", out: `{"x":"` + scenario.Secret + `"}` + "\n" + scenario.Secret, exit: exits(1)})}
		b := startBridge(t, Config{}, launched{codex: codex})
		b.Read()
		b.Send(scenario.InitializeLine, strings.Replace(scenario.CallLine, `"hi"`, `"`+scenario.Secret+`"`, 1))
		assert.Equal(t, 2, bytes.Count([]byte(b.Output()), []byte(scenario.Secret)), "the client gets it")
		b.end(1)
		assert.NotContains(t, b.Log.String(), scenario.Secret)
	})
}
