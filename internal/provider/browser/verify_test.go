package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/provider/browser/lease"
)

// cannotConnect is what the downstream answers when its browser is gone.
const cannotConnect = `{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":"Could not connect to Chrome. Check if Chrome is running.\nCause: ` +
	`Failed to fetch browser webSocket URL from http://127.0.0.1:7001/json/version: fetch failed"}],"isError":true}}`

func TestIdentity(t *testing.T) {
	scenario(t, "240 another browser before a call", Config{}, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "click", ""))
		b.Output()
		b.lessor.becomes("another")
		b.lessor.asked()
		b.Send(call(4, "click", `"t"`))
		out := b.Output()
		assert.Contains(t, out, "Browser: acquiring remote browser lease")
		assert.Contains(t, out, "UUID changed")
		assert.Contains(t, out, "call was not executed")
		assert.NotContains(t, b.tool(0).got(), `"id":4`)
		assert.Equal(t, []string{"identity g1", "release g1 idle"}, b.lessor.asked())
		assert.Contains(t, b.Log.String(), "browser lease identity lost")
		b.lessor.becomes("")
		b.Send(call(5, "click", ""))
		b.Expect(withID(nativeOK, 5))
		b.leave()
		assert.Contains(t, b.lessor.asked(), "release g2 shutdown")
	})
	scenario(t, "257 nobody answers before a call", Config{}, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "click", ""))
		b.Output()
		b.lessor.set(func(f *fakeLessor) { f.silent = true })
		b.Send(call(4, "click", ""))
		a := b.answers()["4"]
		b.requireReplaced(a, false)
		assert.Contains(t, a.text(), "identity could not be verified (connection refused); the call was not executed")
		assert.Contains(t, b.lessor.asked(), "release g1 idle")
		b.leave()
		assert.Empty(t, b.lessor.asked())
	})
	scenario(t, "241 another browser during the first call", Config{}, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "slow", ""))
		b.lessor.becomes("another")
		b.says(`{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"secret page"}],"structuredContent":{"n":1e3,"message":"theirs"}}}` + "\n")
		a := b.answers()["3"]
		b.requireReplaced(a, true)
		assert.Equal(t, "secret page", a.Result.Content[0].Text, "what it answered may say what happened")
		assert.EqualValues(t, 1000, a.Result.Structured["n"])
		assert.Contains(t, a.Result.Structured["message"], "UUID changed")
		assert.Contains(t, b.lessor.asked(), "release g1 idle")
		b.leave()
	})
	scenario(t, "242 a sibling of such a call", Config{}, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "slow", ""))
		b.Send(call(4, "slow", ""))
		b.lessor.becomes("another")
		b.lessor.slow("identity", time.Second)
		b.says(withID(nativeOK, 3) + "\n" + withID(nativeOK, 4) + "\n")
		pass(5 * time.Second)
		got := b.answers()
		b.requireReplaced(got["3"], true)
		b.requireReplaced(got["4"], true)
		b.leave()
	})
	scenario(t, "243 the lease changes while a result is verified", Config{}, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "slow", ""))
		b.Send(call(4, "slow", ""))
		b.lessor.slow("identity", 2*time.Second)
		b.says(withID(nativeOK, 3) + "\n")
		pass(time.Second)
		b.says("{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":\n") // gives the browser up
		pass(time.Minute)
		got := b.answers()
		b.requireReplaced(got["3"], true)
		b.requireReplaced(got["4"], true)
		b.leave()
	})
	scenario(t, "244 the lease changes while its status is asked", Config{}, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "slow", ""))
		b.Send(call(4, "slow", ""))
		b.lessor.set(func(f *fakeLessor) { f.state = lease.Live })
		b.lessor.slow("status", 2*time.Second)
		b.says(withID(cannotConnect, 3) + "\n")
		pass(time.Second)
		b.says("{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":\n")
		pass(time.Minute)
		got := b.answers()
		b.requireReplaced(got["3"], true)
		assert.Contains(t, got["3"].Result.Content[0].Text, "Could not connect")
		b.leave()
	})
	scenario(t, "246 a cancelled call is still verified", Config{}, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "slow", ""))
		b.Send(cancelLine(3))
		assert.Contains(t, b.tool(0).got(), cancelLine(3))
		b.lessor.becomes("another")
		b.says(withID(nativeOK, 3) + "\n")
		b.requireReplaced(b.answers()["3"], true)
		b.leave()
	})
	scenario(t, "a cancelled call need not be answered", Config{Times: Times{Hard: time.Second, Progress: time.Second, FlushStall: time.Minute}}, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "slow", ""))
		b.Send(cancelLine(3))
		pass(time.Minute)
		assert.Empty(t, b.Output())
		assert.Equal(t, 1, b.starts())
		b.leave()
	})
	scenario(t, "calls that wait for a check are told when another call gives the browser up", Config{}, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "slow", ""))
		b.lessor.slow("identity", 2*time.Second)
		b.Send(call(4, "click", ""))
		pass(time.Second)
		b.says("{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":\n")
		got := b.answers()
		b.requireReplaced(got["3"], true)
		b.requireReplaced(got["4"], false)
		assert.Contains(t, got["4"].text(), "released while this call waited; the call was not executed")
		pass(time.Minute)
		b.leave()
	})
}

func TestStatus(t *testing.T) {
	for _, c := range []struct {
		name  string
		state lease.State
		log   string
	}{{"262 the lease stands", lease.Live, ""}, {"263 nobody knows", lease.Unknown, "browser lease status is unknown; "}} {
		scenario(t, c.name, Config{}, func(t *testing.T, b *testBridge) {
			b.lessor.set(func(f *fakeLessor) { f.state = c.state })
			b.Send(call(3, "slow", ""))
			b.says(withID(cannotConnect, 3) + "\n")
			b.Expect(withID(cannotConnect, 3))
			assert.Equal(t, []string{"acquire 7001", "identity g1", "status g1"}, b.lessor.asked())
			assert.Contains(t, b.Log.String(), c.log)
			b.leave()
		})
	}
	scenario(t, "264 the lease is gone", Config{}, func(t *testing.T, b *testBridge) {
		b.lessor.set(func(f *fakeLessor) { f.state = lease.Lost })
		b.Send(call(3, "slow", ""))
		b.says(withID(cannotConnect, 3) + "\n")
		b.requireReplaced(b.answers()["3"], true)
		assert.Equal(t, []string{"acquire 7001", "identity g1", "status g1"}, b.lessor.asked(), "nothing is left to release")
		b.Send(call(4, "click", ""))
		b.Expect(withID(nativeOK, 4))
		assert.Contains(t, b.lessor.asked(), "acquire 7001")
		b.leave()
	})
	scenario(t, "an error of another kind is verified by the identity", Config{}, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "slow", ""))
		other := `{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"Could not connect to Chrome. Unexpected server response: 404"}],"isError":true}}`
		b.says(other + "\n")
		b.Expect(other)
		refused := `{"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"no"}}`
		b.Send(call(4, "slow", ""))
		b.says(refused + "\n")
		b.Expect(refused)
		assert.NotContains(t, b.lessor.asked(), "status g1")
		b.leave()
	})
}

func TestResultsThatCannotBeVerified(t *testing.T) {
	const mib = 1 << 20
	long := strings.Repeat("x", 11*mib)
	for _, c := range []struct{ name, line string }{
		{"249 too long", `{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"` + long + `"}]}}`},
		{"250 too long, the id behind", `{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"` + long + `"}]},"id":3}`},
		{"251 too long, the id and more behind", `{"result":{"content":[{"type":"text","text":"` + long + `"}]},"id" : 3 , "jsonrpc":"2.0"}`},
		{"too long, no id", `{"result":{"content":[{"type":"text","text":"` + long + `"}]}}`},
		{"253 malformed", `{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"cut`},
		{"malformed, no id", `{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"cut`},
		{"not a result", `{"jsonrpc":"2.0","id":3,"result":"text"}`},
	} {
		scenario(t, c.name, Config{}, func(t *testing.T, b *testBridge) {
			b.Send(call(3, "slow", ""))
			b.says(c.line + "\n")
			out := b.Output()
			assert.Less(t, len(out), 2000, "nothing of it is passed on")
			assert.NotContains(t, out, "cut")
			assert.Contains(t, out, `"code":"browser_lease_replaced"`)
			assert.Contains(t, out, "never blindly replay")
			if len(c.line) > 10*mib {
				assert.Contains(t, b.Log.String(), "frame exceeded rewrite cap")
			}
			b.Send(call(4, "click", ""))
			b.Expect(withID(nativeOK, 4))
			assert.Equal(t, 2, b.lessor.count(), "the next call gets another browser")
			assert.NotContains(t, strings.TrimPrefix(b.tool(0).got(), call(3, "slow", "")), call(3, "slow", "")+"\n"+call(3, "slow", ""))
			b.leave()
		})
	}
	scenario(t, "252 the server dies with results of three calls", Config{}, func(t *testing.T, b *testBridge) {
		b.lessor.slow("identity", 2*time.Second)
		b.Send(call(3, "slow", ""))
		pass(2 * time.Second)
		b.Send(call(4, "slow", ""), call(5, "slow", ""))
		pass(2 * time.Second)
		b.says(withID(nativeOK, 3) + "\n" + withID(nativeOK, 4) + "\n" + withID(nativeOK, 5) + "\n")
		b.tool(0).end(exited(0))
		b.end(0)
		got := b.answers()
		for _, id := range []string{"3", "4", "5"} {
			b.requireReplaced(got[id], true)
		}
	})
	scenario(t, "255 a result without its end", Config{Times: Times{Hard: time.Minute, Progress: time.Second, FlushStall: time.Minute}}, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "slow", ""))
		b.says(withID(nativeOK, 3))
		pass(time.Minute)
		b.requireReplaced(b.answers()["3"], true)
		b.Send(call(4, "slow", ""))
		b.says(withID(nativeOK, 4))
		b.tool(1).end(exited(0))
		b.end(0)
		b.requireReplaced(b.answers()["4"], true)
	})
	scenario(t, "an answer to a call that the server has not got", Config{}, func(t *testing.T, b *testBridge) {
		b.lessor.slow("acquire", time.Second)
		b.Send(call(3, "slow", ""))
		b.says(withID(nativeOK, 3) + "\n")
		assert.Empty(t, b.Output())
		pass(time.Second)
		b.leave()
	})
}

func TestHardTimeout(t *testing.T) {
	second := Config{Times: Times{Hard: time.Second, Idle: time.Hour, Progress: 5 * time.Second, FlushStall: time.Minute}}
	scenario(t, "254 the server is started anew on the same browser", second, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "slow", ""))
		b.Send(`{"jsonrpc":"2.0","id":4,"method":"tools/list"}`)
		b.Output()
		b.lessor.asked()
		pass(time.Second)
		b.requireReplaced(b.answers()["3"], true)
		require.Equal(t, 2, b.starts())
		assert.Equal(t, 1, b.tool(0).closed)
		assert.Equal(t, []string{"identity g1"}, b.lessor.asked(), "the browser stays, and is looked at")
		assert.Equal(t, b.tool(0).args, b.tool(1).args)
		b.Send(call(5, "click", ""))
		b.Expect(withID(nativeOK, 5))
		assert.NotContains(t, b.tool(1).got(), `"id":3`, "nothing is replayed")
		b.leave()
		assert.Contains(t, b.lessor.asked(), "release g1 shutdown")
	})
	scenario(t, "calls wait for the new server", second, func(t *testing.T, b *testBridge) {
		b.plans([]*fakeTool{{mute: []string{"initialize"}}}...)
		b.Send(call(3, "slow", ""))
		pass(time.Second)
		b.Output()
		b.Send(call(4, "click", ""))
		pass(500 * ms)
		assert.Empty(t, b.Output())
		b.says(`{"jsonrpc":"2.0","id":"mcp-agents/browser/initialize/` + testSession + `/2","result":{}}` + "\n")
		b.Expect(withID(nativeOK, 4))
		b.leave()
	})
	scenario(t, "a recovery that fails", second, func(t *testing.T, b *testBridge) {
		b.lessor.slow("identity", 100*ms)
		b.Send(call(3, "slow", ""))
		pass(time.Second)
		b.Output()
		b.Send(call(4, "click", ""))
		b.lessor.becomes("another")
		pass(time.Second)
		a := b.answers()["4"]
		b.requireReplaced(a, false)
		assert.Contains(t, a.text(), "started anew after a call that took too long")
		assert.Contains(t, b.Log.String(), "browser reconnect failed identity verification")
		assert.Contains(t, b.lessor.asked(), "release g1 idle")
		b.leave()
	})
	scenario(t, "245 a deadline that passes while another browser is got", Config{Times: Times{Hard: 550 * ms, Idle: time.Hour, Progress: 5 * time.Second, FlushStall: time.Minute}}, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "slow", ""))
		b.Output()
		b.lessor.becomes("another")
		pass(100 * ms)
		b.Send(call(4, "click", ""))
		b.requireReplaced(b.answers()["4"], false)
		b.lessor.becomes("")
		b.lessor.slow("acquire", 500*ms)
		b.Send(call(5, "click", ""))
		pass(450 * ms) // the deadline of 3
		b.requireReplaced(b.answers()["3"], true)
		assert.Equal(t, 1, b.starts(), "not before there is a browser")
		pass(50 * ms)
		require.Equal(t, 2, b.starts())
		b.Expect(withID(nativeOK, 5))
		b.leave()
	})
	scenario(t, "without a browser", second, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "slow", ""))
		b.lessor.becomes("another")
		b.Send(call(4, "click", ""))
		b.Output()
		pass(time.Second)
		b.requireReplaced(b.answers()["3"], true)
		require.Equal(t, 2, b.starts())
		b.lessor.becomes("")
		b.Send(call(5, "click", ""))
		b.Expect(withID(nativeOK, 5))
		b.leave()
	})
	scenario(t, "a request that is no browser call", second, func(t *testing.T, b *testBridge) {
		b.Send(`{"jsonrpc":"2.0","id":4,"method":"x/y"}`)
		pass(time.Second)
		assert.Equal(t, -32001, b.answers()["4"].Error.Code)
		assert.Contains(t, b.tool(0).got(), `"method":"notifications/cancelled","params":{"requestId":4`)
		b.says(`{"jsonrpc":"2.0","id":4,"result":{}}` + "\n")
		assert.Empty(t, b.Output(), "its late answer is dropped")
		assert.Equal(t, 1, b.starts())
		b.leave()
	})
	scenario(t, "a result that cannot be verified in time", second, func(t *testing.T, b *testBridge) {
		b.lessor.set(func(f *fakeLessor) { f.state = lease.Live })
		b.Send(call(3, "slow", ""))
		b.lessor.slow("status", time.Hour)
		b.says(withID(cannotConnect, 3) + "\n")
		pass(time.Second)
		b.requireReplaced(b.answers()["3"], true)
		b.leave()
	})
	scenario(t, "messages of ours behind a half-written line", second, func(t *testing.T, b *testBridge) {
		b.says(fmt.Sprintf(`{"method":"n","params":"%s`, strings.Repeat("z", 11<<20)))
		b.Send(`{"jsonrpc":"2.0","id":4,"method":"x/y"}`)
		pass(time.Second + time.Minute)
		b.end(1)
		assert.Contains(t, b.Output(), `"id":4,"error":{"code":-32001`)
	})
}
