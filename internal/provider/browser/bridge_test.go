package browser

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/mcp/stdio"
)

func TestPassThrough(t *testing.T) {
	t.Run("215 one call from start to end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := startBridge(t, Config{})
			b.Send(initializeLine)
			b.Expect(withID(nativeInit, 1))
			b.Send(initializedLine, listLine)
			list := b.Output()
			assert.Contains(t, list, `"id":2,"result":{"tools":[{"name":"click","description":"Clicks."},`, "what has no note keeps its bytes")
			assert.Contains(t, list, `"description":"Audits.\n\nmcp-agents remote-browser note`)
			assert.Contains(t, list, "never as a gate")
			assert.Contains(t, list, `{"name":"upload_file","description":"`+UploadUnsupported+`"}`)
			assert.Empty(t, b.lessor.asked(), "a browser is got when one is needed")
			b.Send(call(3, "click", ""))
			b.Expect(withID(nativeOK, 3))
			assert.Equal(t, []string{"acquire 7001", "identity g1", "identity g1"}, b.lessor.asked(), "got, then verified after the call")
			b.Send(call(4, "click", ""))
			b.Expect(withID(nativeOK, 4))
			assert.Equal(t, []string{"identity g1", "identity g1"}, b.lessor.asked(), "before and after")
			b.leave()
			assert.Equal(t, []string{"release g1 shutdown"}, b.lessor.asked())
			assert.Equal(t, strings.Join([]string{initializeLine, initializedLine, listLine, call(3, "click", ""), call(4, "click", ""), ""}, "\n"), b.tool(0).got())
			assert.Equal(t, []string{"--browserUrl", "http://127.0.0.1:7001", "--no-usage-statistics",
				"--blockedUrlPattern", "*://*:7001/*", "--fileNavigations=false"}, b.tool(0).args)
			log := b.Log.String()
			assert.Contains(t, log, "browser passthrough: session_id="+testSession)
			assert.Contains(t, log, "browser passthrough: started chrome-devtools-mcp (source=explicit, browser_url=http://127.0.0.1:7001)")
			assert.Contains(t, log, "browser passthrough finalize: client disconnected")
		})
	})
	scenario(t, "216 217 218 chunks and lines of others", Config{}, func(t *testing.T, b *testBridge) {
		mixed := `{"jsonrpc": "2.0","method":"notifications/message","params":{"n":9007199254740993}}` + "\n\nno json\n" + `{"id":"foreign","result":1}` + "\n"
		for _, part := range strings.SplitAfter(mixed, "") {
			b.says(part)
		}
		b.Expect(strings.TrimSuffix(mixed, "\n"))
		b.leave()
	})
	scenario(t, "219 the server dies inside a frame", Config{}, func(t *testing.T, b *testBridge) {
		b.Send(`{"jsonrpc":"2.0","id":7,"method":"x/y"}`)
		b.says(`{"jsonrpc":"2.0","id":7,"res`)
		b.tool(0).end(exited(3))
		synctest.Wait()
		b.end(3)
		out := b.Output()
		assert.Contains(t, out, `"id":7,"error":{"code":-32001,"message":"mcp-agents: browser pass-through request aborted before responding (chrome-devtools-mcp exited with code 3)"}`)
		assert.Equal(t, 1, strings.Count(out, "-32001"))
	})
	scenario(t, "220 a last line without its end", Config{}, func(t *testing.T, b *testBridge) {
		b.Send(`{"jsonrpc":"2.0","id":7,"method":"x/y"}`)
		b.says(`{"jsonrpc":"2.0","id":7,"result":{}}`)
		b.tool(0).end(exited(0))
		b.end(0)
		assert.Contains(t, b.Output(), `{"jsonrpc":"2.0","id":7,"result":{}}`+"\n")
	})
	scenario(t, "221 a long line that is no browser's", Config{}, func(t *testing.T, b *testBridge) {
		b.Send(`{"jsonrpc":"2.0","id":7,"method":"x/y"}`)
		long := `{"jsonrpc":"2.0","id":7,"result":{"x":"` + strings.Repeat("y", 11<<20) + `"}}` + "\n"
		b.says(long)
		require.True(t, long == b.Output(), "it was changed")
		assert.Contains(t, b.Log.String(), "frame exceeded rewrite cap")
		b.leave()
	})
	scenario(t, "222 a client that reads slowly", Config{}, func(t *testing.T, b *testBridge) {
		b.Pause()
		flood := strings.Repeat(`{"method":"n","params":"`+strings.Repeat("z", 1<<16)+"\"}\n", 64)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = b.tool(0).stdout.Write([]byte(flood))
		}()
		pass(time.Second)
		select {
		case <-done:
			t.Fatal("nothing held the server back")
		default:
		}
		b.Resume()
		<-done
		assert.True(t, b.Output() == flood, "the stream was changed")
		b.Send(call(3, "click", ""))
		b.Expect(withID(nativeOK, 3))
		b.leave()
	})
	scenario(t, "223 roots are not our business", Config{}, func(t *testing.T, b *testBridge) {
		ask := `{"jsonrpc":"2.0" ,"id":0,"method":"roots/list"}`
		b.says(ask + "\n")
		b.Expect(ask)
		reply := `{"jsonrpc":"2.0", "id":0 ,"result":{"roots":[{"uri":"file:///ws"}]}}`
		b.Send(reply)
		assert.True(t, strings.HasSuffix(b.tool(0).got(), reply+"\n"))
		assert.Empty(t, b.lessor.asked())
		b.leave()
	})
	t.Run("224 no answer to initialize", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := startBridge(t, Config{Times: Times{Hard: 180 * ms, Progress: time.Second, FlushStall: time.Minute}}, &fakeTool{mute: []string{"initialize"}})
			b.Send(initializeLine)
			pass(180 * ms)
			b.Expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"mcp-agents: browser pass-through request hard timeout; it had no answer within 180ms and was not replayed"}}`)
			b.leave()
		})
	})
	scenario(t, "225 the server dies during a browser call", Config{}, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "slow", ""), `{"jsonrpc":"2.0","id":4,"method":"x/y"}`)
		b.tool(0).end(killed())
		b.end(137)
		got := b.answers()
		b.requireReplaced(got["3"], true)
		assert.Equal(t, -32001, got["4"].Error.Code)
		assert.Contains(t, b.lessor.asked(), "release g1 shutdown")
	})
	scenario(t, "227 a tool that is not the server's", Config{}, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "nobody", ""))
		b.Expect(withID(nativeOK, 3))
		assert.Empty(t, b.lessor.asked())
		b.leave()
	})
	t.Run("228 a call before any list", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := startBridge(t, Config{})
			b.Send(initializeLine, call(3, "nobody", ""))
			b.Expect(withID(nativeInit, 1), withID(nativeOK, 3))
			assert.Contains(t, b.lessor.asked(), "acquire 7001")
			b.leave()
		})
	})
	scenario(t, "an id that is reused in flight ends the bridge", Config{}, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "slow", ""))
		b.Send(call(3, "click", ""))
		b.end(1)
		b.requireReplaced(b.answers()["3"], true)
	})
	scenario(t, "reserved ids", Config{}, func(t *testing.T, b *testBridge) {
		b.Send(call(`"mcp-agents/browser/initialize/x"`, "click", ""), `{"id":"mcp-agents/browser/downstream-request/x","method":"ping"}`)
		for _, a := range b.answers() {
			assert.Equal(t, codeReserved, a.code())
		}
		assert.Empty(t, b.lessor.asked())
		b.leave()
	})
	scenario(t, "signals", Config{}, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "click", ""))
		b.Cancel(stdio.Signal(15))
		b.end(143)
		assert.Contains(t, b.lessor.asked(), "release g1 shutdown")
	})
	scenario(t, "a client that is gone", Config{}, func(t *testing.T, b *testBridge) {
		b.Out.Close()
		_, _ = b.In.Write([]byte(call(3, "nobody", "") + "\n"))
		b.end(0)
	})
	scenario(t, "266 stderr", Config{Times: Times{Hard: time.Minute, Idle: time.Second, Progress: time.Second, FlushStall: time.Minute}}, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "click", ""))
		for range 3 {
			pass(400 * ms)
			_, _ = b.tool(0).stderr.Write([]byte("a warning\n"))
		}
		synctest.Wait()
		assert.Contains(t, b.Log.String(), "[chrome-devtools] a warning")
		assert.Contains(t, b.lessor.asked(), "release g1 idle", "it is no sign of use")
		b.leave()
	})
}
