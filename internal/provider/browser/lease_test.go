package browser

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/provider/browser/lease"
	"mcpagents/internal/sandbox/wire"
)

func exited(code int) wire.Exit { return wire.Exit{Code: code, Reason: wire.ReasonExit} }
func killed() wire.Exit         { return wire.Exit{Code: 137, Signal: 9, Reason: wire.ReasonExit} }

func TestAcquire(t *testing.T) {
	scenario(t, "226 one attempt is shared, in order", Config{}, func(t *testing.T, b *testBridge) {
		b.lessor.slow("acquire", 12*time.Second)
		b.Send(call(3, "click", `"tok"`), `{"jsonrpc":"2.0","id":4,"method":"x/y"}`, call(5, "slow", ""), call(6, "click", ""), `{"method":"notifications/x"}`, cancelLine(6))
		b.Expect(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok","progress":1,"message":"Browser: acquiring remote browser lease"}}`)
		pass(5 * time.Second)
		b.Expect(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok","progress":2,"message":"Browser: still acquiring remote browser lease (5s elapsed)"}}`)
		pass(5 * time.Second)
		assert.Contains(t, b.Output(), "(10s elapsed)")
		pass(2 * time.Second)
		b.Expect(withID(nativeOK, 3))
		pass(time.Minute)
		assert.Empty(t, b.Output(), "it says nothing more, and the cancelled call has no answer")
		assert.True(t, strings.HasSuffix(b.tool(0).got(),
			strings.Join([]string{call(3, "click", `"tok"`), `{"jsonrpc":"2.0","id":4,"method":"x/y"}`, call(5, "slow", ""), `{"method":"notifications/x"}`, ""}, "\n")))
		assert.Equal(t, "acquire 7001", b.lessor.asked()[0])
		assert.Equal(t, 1, b.lessor.count())
		b.leave()
	})
	for _, c := range []struct {
		name     string
		err      error
		code     string
		text     string
		failOpen bool
		log      string
	}{
		{"229 none is to be had", &lease.UnavailableError{Cause: lease.NoBox, Text: "GUI not verified — no browser box available\nLease helper: busy", Detail: "busy"},
			codeUnavailable, "mcp-agents: GUI not verified — no browser box available\nLease helper: busy", false, "browser lease unavailable: busy"},
		{"230 nothing to show", &lease.UnavailableError{Cause: lease.DevServer, Text: "GUI not verified: dev server not reachable on 3000"},
			codeDevServer, "GUI not verified: dev server not reachable on 3000", true, "browser lease unavailable"},
		{"231 no store", &lease.UnavailableError{Cause: lease.MinIO, Text: "GUI not verified: MinIO is unreachable"},
			codeMinIO, "GUI not verified: MinIO is unreachable", true, "browser lease unavailable"},
		{"232 it failed", &lease.ProvisioningError{Text: "lease helper exited with code 70"},
			codeProvisioning, "mcp-agents: browser provisioning failed: lease helper exited with code 70", false, ""},
	} {
		scenario(t, c.name, Config{}, func(t *testing.T, b *testBridge) {
			b.lessor.slow("acquire", time.Second)
			b.lessor.set(func(f *fakeLessor) {
				f.acquire = func(n int, _ lease.Request) (lease.Record, error) {
					if n == 1 {
						return lease.Record{}, c.err
					}
					return lease.Record{}, nil
				}
			})
			b.Send(call(3, "click", ""), call(4, "click", ""), call(5, "nobody", ""))
			pass(time.Second)
			got := b.answers()
			for _, id := range []string{"3", "4"} {
				assert.Equal(t, c.code, got[id].code())
				assert.Equal(t, c.text, got[id].text())
				assert.True(t, got[id].Result.IsError)
				_, closed := got[id].Result.Structured["failClosed"]
				assert.Equal(t, !c.failOpen, closed)
				assert.Equal(t, strings.TrimPrefix(c.text, "mcp-agents: "), got[id].Result.Structured["message"])
			}
			assert.Empty(t, got["5"].code(), "what is no browser call is forwarded")
			assert.Contains(t, b.Log.String(), c.log)
			b.Send(call(6, "click", ""))
			pass(time.Second)
			b.Expect(withID(nativeOK, 6))
			assert.NotContains(t, b.tool(0).got(), `"id":3`)
			b.leave()
		})
	}
	scenario(t, "a lease that cannot be used is given back", Config{}, func(t *testing.T, b *testBridge) {
		b.lessor.set(func(f *fakeLessor) {
			f.acquire = func(int, lease.Request) (lease.Record, error) {
				return lease.Record{Generation: "odd"}, &lease.ProvisioningError{Text: "malformed", Err: errors.New("x")}
			}
		})
		b.Send(call(3, "click", ""))
		assert.Equal(t, codeProvisioning, b.answers()["3"].code())
		assert.Equal(t, []string{"acquire 7001", "release odd idle"}, b.lessor.asked())
		b.leave()
		assert.Empty(t, b.lessor.asked())
	})
	scenario(t, "a browser that does not say who it is", Config{}, func(t *testing.T, b *testBridge) {
		b.lessor.set(func(f *fakeLessor) { f.silent = true })
		b.Send(call(3, "click", ""))
		assert.Equal(t, codeProvisioning, b.answers()["3"].code())
		assert.Contains(t, b.lessor.asked(), "release g1 idle")
		b.leave()
	})
	scenario(t, "258 the client leaves while a browser is got", Config{}, func(t *testing.T, b *testBridge) {
		b.lessor.slow("acquire", time.Hour)
		b.Send(call(3, "click", ""))
		b.leave()
		assert.Equal(t, []string{"acquire 7001"}, b.lessor.asked())
		assert.Equal(t, -32001, b.answers()["3"].Error.Code)
	})
	scenario(t, "a held call reaches its deadline", Config{Times: Times{Hard: time.Second, Progress: 5 * time.Second, FlushStall: time.Minute}}, func(t *testing.T, b *testBridge) {
		b.lessor.slow("acquire", time.Minute)
		b.Send(call(3, "click", ""))
		pass(time.Second)
		assert.Equal(t, -32001, b.answers()["3"].Error.Code)
		pass(time.Minute)
		assert.Empty(t, b.Output())
		b.leave()
	})
}

// taken says that the port is taken the first times.
func taken(times int) func(int, lease.Request) (lease.Record, error) {
	return func(n int, _ lease.Request) (lease.Record, error) {
		if n <= times {
			return lease.Record{}, lease.ErrPortTaken
		}
		return lease.Record{}, nil
	}
}

func TestPortRace(t *testing.T) {
	scenario(t, "233 once", Config{}, func(t *testing.T, b *testBridge) {
		b.lessor.set(func(f *fakeLessor) { f.acquire = taken(1) })
		b.Send(call(3, "click", ""))
		b.Expect(withID(nativeOK, 3))
		assert.Equal(t, []string{"acquire 7001", "acquire 7002", "identity g2", "identity g2"}, b.lessor.asked())
		require.Equal(t, 2, b.starts())
		assert.Equal(t, 1, b.tool(0).closed)
		replay := strings.Replace(initializeLine, `"id":1`, `"id":"mcp-agents/browser/initialize/`+testSession+`/2"`, 1)
		assert.Equal(t, strings.Join([]string{replay, initializedLine, call(3, "click", ""), ""}, "\n"), b.tool(1).got())
		assert.Contains(t, b.tool(1).args, "*://*:7002/*")
		b.leave()
	})
	roots := `{"jsonrpc":"2.0","id":0,"method":"roots/list"}`
	alias := `"mcp-agents/browser/downstream-request/` + testSession + `/2/1"`
	for name, order := range map[string][2]string{"234 roots after a restart": {"0", alias}, "235 roots out of order": {alias, "0"}} {
		scenario(t, name, Config{}, func(t *testing.T, b *testBridge) {
			b.says(roots + "\n")
			b.Expect(roots)
			b.lessor.set(func(f *fakeLessor) { f.acquire = taken(1) })
			b.Send(call(3, "click", ""))
			b.Output()
			b.says(roots + "\n")
			b.Expect(strings.Replace(roots, `"id":0`, `"id":`+alias, 1))
			before := b.tool(1).got()
			for _, id := range order {
				b.Send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"roots":[]}}`)
			}
			assert.Equal(t, `{"jsonrpc":"2.0","id":0,"result":{"roots":[]}}`+"\n", strings.TrimPrefix(b.tool(1).got(), before), "one answer, under the child's own id")
			b.leave()
		})
	}
	scenario(t, "236 always", Config{}, func(t *testing.T, b *testBridge) {
		b.lessor.set(func(f *fakeLessor) { f.acquire = taken(99) })
		b.Send(call(3, "click", ""))
		a := b.answers()["3"]
		assert.Equal(t, codeProvisioning, a.code())
		assert.Contains(t, a.text(), "3 attempts")
		assert.Equal(t, []string{"acquire 7001", "acquire 7002", "acquire 7003"}, b.lessor.asked())
		b.leave()
	})
	scenario(t, "247 what is outstanding is lost", Config{}, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "slow", ""), `{"jsonrpc":"2.0","id":4,"method":"x/y"}`)
		b.lessor.becomes("another")
		b.Send(call(5, "click", "")) // refused, and the browser given back
		b.Output()
		b.lessor.becomes("")
		b.lessor.set(func(f *fakeLessor) { f.acquire = taken(2) })
		b.Send(call(6, "click", ""))
		got := b.answers()
		b.requireReplaced(got["3"], true)
		assert.Equal(t, -32001, got["4"].Error.Code)
		assert.Empty(t, got["6"].code())
		b.leave()
	})
	scenario(t, "248 a half-written message of the server", Config{}, func(t *testing.T, b *testBridge) {
		b.says(`{"method":"n","params":"` + strings.Repeat("z", 11<<20))
		b.lessor.set(func(f *fakeLessor) { f.acquire = taken(1) })
		b.Send(call(3, "click", ""))
		b.says(`"}` + "\n")
		out := b.Output()
		assert.Contains(t, out, "unsafe frame boundary")
		assert.Contains(t, out, codeProvisioning)
		assert.Equal(t, 1, b.starts())
		b.leave()
	})
	scenario(t, "the server cannot be started again", Config{}, func(t *testing.T, b *testBridge) {
		b.lessor.set(func(f *fakeLessor) { f.acquire = taken(1) })
		b.plans([]*fakeTool{nil}...)
		b.Send(call(3, "click", ""))
		assert.Contains(t, b.answers()["3"].text(), "npx is not on PATH")
		b.Send(call(4, "click", ""))
		b.Expect(withID(nativeOK, 4))
		b.leave()
	})
}

func TestIdle(t *testing.T) {
	quick := Config{Times: Times{Hard: time.Hour, Idle: time.Minute, Progress: 5 * time.Second, FlushStall: time.Minute}}
	scenario(t, "267 an unused browser is given back", quick, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "click", ""))
		b.Output()
		pass(59 * time.Second)
		assert.NotContains(t, b.lessor.asked(), "release g1 idle")
		pass(time.Second)
		assert.Equal(t, []string{"release g1 idle"}, b.lessor.asked())
		b.Send(call(4, "click", ""))
		b.Expect(withID(nativeOK, 4))
		assert.Contains(t, b.lessor.asked(), "acquire 7001")
		b.leave()
		assert.Equal(t, []string{"release g2 shutdown"}, b.lessor.asked())
	})
	scenario(t, "265 every whole frame counts", quick, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "slow", ""))
		for range 5 {
			pass(50 * time.Second)
			b.says(`{"method":"notifications/progress"}` + "\n")
		}
		b.says(`{"half`)
		pass(59 * time.Second)
		assert.NotContains(t, b.lessor.asked(), "release g1 idle")
		b.says(` a line`)
		pass(time.Second)
		assert.Contains(t, b.lessor.asked(), "release g1 idle", "not a part of one, and not the call")
		b.says("\"}\n" + withID(nativeOK, 3) + "\n")
		b.Output()
		b.leave()
	})
	scenario(t, "268 zero never gives back", Config{Times: Times{Hard: time.Hour, Progress: time.Second, FlushStall: time.Minute}}, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "click", ""))
		pass(24 * time.Hour)
		assert.NotContains(t, strings.Join(b.lessor.asked(), " "), "release")
		b.leave()
	})
	scenario(t, "256 not while an identity is read", quick, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "click", ""))
		pass(59 * time.Second)
		b.lessor.slow("identity", 2*time.Second)
		b.Output()
		b.Send(call(4, "click", ""))
		pass(10 * time.Second)
		assert.NotContains(t, strings.Join(b.lessor.asked(), " "), "release")
		b.Expect(withID(nativeOK, 4))
		b.leave()
	})
	scenario(t, "not while the client does not read", quick, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "click", ""))
		b.Pause()
		go func() { _, _ = b.tool(0).stdout.Write([]byte(strings.Repeat("{\"x\":1}\n", 1<<19))) }()
		pass(2 * time.Minute)
		assert.NotContains(t, strings.Join(b.lessor.asked(), " "), "release")
		b.Resume()
		pass(time.Minute)
		assert.Contains(t, strings.Join(b.lessor.asked(), " "), "release g1 idle")
		b.leave()
	})
	for _, c := range []struct{ name, text string }{{"269 a release that fails", "exit 69: no such lease"}, {"270 ... without words", "exit 70"}, {"271 ... by its output", "wrote more than 10 MiB"}} {
		scenario(t, c.name, quick, func(t *testing.T, b *testBridge) {
			b.lessor.set(func(f *fakeLessor) { f.refusal = errors.New(c.text) })
			b.Send(call(3, "click", ""))
			pass(time.Minute)
			b.Send(call(4, "click", ""))
			assert.Contains(t, b.Output(), withID(nativeOK, 4))
			assert.Contains(t, b.Log.String(), "browser lease release (idle) was nonfatal: "+c.text)
			b.leave()
			assert.Contains(t, b.Log.String(), "browser lease release (shutdown) was nonfatal: "+c.text)
		})
	}
	scenario(t, "272 the shutdown names the lease of now", quick, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "click", ""))
		pass(time.Minute)
		b.Send(call(4, "click", ""))
		b.lessor.asked()
		b.leave()
		assert.Equal(t, []string{"release g2 shutdown"}, b.lessor.asked())
	})
	scenario(t, "273 a slow release delays the next browser", quick, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "click", ""))
		b.lessor.slow("release", 20*time.Second)
		pass(time.Minute)
		b.Output()
		b.Send(call(4, "click", `7`), `{"jsonrpc":"2.0","id":5,"method":"x/y"}`)
		pass(19 * time.Second)
		assert.Equal(t, 1, b.lessor.count())
		pass(time.Second)
		assert.Equal(t, 2, b.lessor.count())
		assert.Contains(t, b.Output(), withID(nativeOK, 4))
		b.leave()
	})
	scenario(t, "the end waits for a release that is under way", quick, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "click", ""))
		b.lessor.slow("release", 20*time.Second)
		pass(time.Minute)
		start := time.Now()
		b.leave()
		assert.Equal(t, 20*time.Second, time.Since(start))
	})
}
