package browser

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestServerThatCannotBeStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBridge(t, Config{}, nil, nil)
		b.Send(initializeLine, initializedLine, listLine, `{"jsonrpc":"2.0","id":"p","method":"ping"}`)
		out := b.Output()
		assert.Contains(t, out, `"serverInfo":{"name":"mcp-agents","version":"1.2.3"}`)
		assert.Contains(t, out, `"name":"take_screenshot"`)
		assert.Contains(t, out, "never as a gate")
		assert.Contains(t, out, `{"jsonrpc":"2.0","id":"p","result":{}}`)
		b.Send(call(3, "click", ""))
		a := b.answers()["3"]
		assert.Equal(t, codeProvisioning, a.code())
		assert.Equal(t, "mcp-agents: the browser's tool server is not available: npx is not on PATH: install it. The next call tries again.", a.text())
		b.Send(call(4, "click", ""))
		b.Expect(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, withID(nativeOK, 4))
		assert.True(t, strings.HasPrefix(b.tool(0).got(), strings.Replace(initializeLine, `"id":1`, `"id":"mcp-agents/browser/initialize/`+testSession+`/3"`, 1)+
			"\n"+initializedLine+"\n"))
		b.leave()
	})
}

func TestSlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBridge(t, Config{}, &fakeTool{mute: []string{"initialize", "tools/list"}})
		b.Send(initializeLine, initializedLine, listLine)
		assert.Empty(t, b.Output())
		pass(DefaultHandshakeTimeout)
		got := b.Output()
		assert.Equal(t, 1, strings.Count(got, `"id":1,`))
		assert.Equal(t, 1, strings.Count(got, `"id":2,`))
		b.says(withID(nativeInit, 1) + "\n" + withID(nativeTools, 2) + "\n")
		b.Expect(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		b.Send(call(3, "click", ""))
		b.Expect(withID(nativeOK, 3))
		b.leave()
	})
}

func TestServerThatDiesBeforeItServes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBridge(t, Config{}, &fakeTool{mute: []string{"initialize"}})
		b.Send(initializeLine)
		_, _ = b.tool(0).stderr.Write([]byte("needs node 20\n"))
		synctest.Wait()
		b.tool(0).end(exited(1))
		assert.Contains(t, b.Output(), `"name":"mcp-agents"`)
		assert.Contains(t, b.Log.String(), "failed to start chrome-devtools-mcp: it ended before it answered initialize (chrome-devtools-mcp exited with code 1): needs node 20")
		b.Send(listLine)
		assert.Contains(t, b.Output(), `"name":"take_screenshot"`)
		b.Send(call(3, "click", ""))
		assert.Contains(t, b.Output(), withID(nativeOK, 3))
		require.Equal(t, 2, b.starts())
		b.leave()
	})
}

func TestHandshakeDuringALongAcquire(t *testing.T) {
	scenario(t, "ping and tools/list are answered here", Config{}, func(t *testing.T, b *testBridge) {
		b.lessor.slow("acquire", time.Minute)
		b.Send(call(3, "click", ""), `{"jsonrpc":"2.0","id":"p","method":"ping"}`, `{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
		pass(DefaultHandshakeTimeout)
		out := b.Output()
		assert.Contains(t, out, `{"jsonrpc":"2.0","id":"p","result":{}}`)
		assert.Contains(t, out, `{"jsonrpc":"2.0","id":"l","result":{"tools":[{"name":"click",`)
		b.leave()
	})
}

func TestClientThatAsksAndLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBridge(t, Config{}, &fakeTool{mute: []string{"initialize"}})
		b.Send(initializeLine)
		b.Disconnect()
		pass(time.Second)
		b.says(withID(nativeInit, 1) + "\n")
		b.end(0)
		b.Expect(withID(nativeInit, 1))
	})
}

func TestFramedClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBridge(t, Config{})
		_, err := b.In.Write([]byte("Content-Length: 38\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"x\"}\n"))
		require.NoError(t, err)
		synctest.Wait()
		assert.Contains(t, b.tool(0).got(), `{"jsonrpc":"2.0","id":7,"method":"x"}`)
		b.says(`{"jsonrpc":"2.0","id":7,"result":{}}` + "\n")
		assert.Equal(t, "Content-Length: 36\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}", b.Output())
		b.leave()
	})
}

func TestCheckPatterns(t *testing.T) {
	for _, p := range []string{"https://example.com/*", "http://127.0.0.1:3000/*", "*://*/*", "http://[::1]:80/*", "data:*", "about:blank", "https://*.example.com:8443/x"} {
		assert.NoError(t, CheckPatterns([]string{p}), p)
	}
	for _, p := range []string{"*", "*://*:*/*", "http://localhost:92*/*", "http://127.0.0.1{:*}?/*", "*:*", "http://[::1]:*/x", "http:*", "http://a@b:1/", "http://127.0.0.1:(\\d+)/*", "localhost:9222"} {
		err := CheckPatterns([]string{"https://ok.example/*", p})
		require.Error(t, err, p)
		assert.Contains(t, err.Error(), strconv.Quote(p))
	}
	c := Config{AllowedURLPatterns: []string{"http://127.0.0.1:3000/*"}, LogFile: "/l"}
	assert.True(t, c.allows(3000))
	assert.Equal(t, []string{"--browserUrl", "http://127.0.0.1:5", "--no-usage-statistics", "--logFile", "/l",
		"--allowedUrlPattern", "http://127.0.0.1:3000/*", "--fileNavigations=false"}, c.arguments(5))
}

func TestRulesAreUnambiguous(t *testing.T) {
	seen := map[[2]string]bool{}
	for _, r := range rules() {
		key := [2]string{r.in.String(), r.on.String()}
		assert.False(t, seen[key], key)
		seen[key] = true
	}
	assert.Len(t, seen, len(rules()))
}

func TestAnnotated(t *testing.T) {
	b := &bridge{cfg: Config{UploadNote: UploadMounted}}
	once := b.annotated([]byte(`{"tools":[{"name":"upload_file","description":null},{"description":"","name":"lighthouse_audit"}],"nextCursor":"x"}`))
	assert.Equal(t, `{"tools":[{"name":"upload_file","description":"`+UploadMounted+`"},{"description":"`+timingNote+`","name":"lighthouse_audit"}],"nextCursor":"x"}`, string(once))
	assert.Equal(t, string(once), string(b.annotated(once)), "a note is added once")
	assert.Equal(t, "null", string(b.annotated([]byte("null"))))
	b.sawTools(once, false)
	b.sawTools([]byte(`{"tools":[{"name":"click"}]}`), true)
	assert.Equal(t, map[string]bool{"upload_file": true, "lighthouse_audit": true, "click": true}, b.tools, "pages add up")
}
