package proxy

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Lines of the client and of the child.
const (
	initializeLine  = `{"jsonrpc":"2.0", "id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}`
	initializeReply = `{"id":1, "result":{"protocolVersion":"2025-06-18"},"jsonrpc":"2.0"}`
	initializedLine = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	localInitialize = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"mcp-agents","version":"1.2.3"}}}`
	listLineOf      = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	localList       = `{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}`
	callLine        = `{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"x"}}`
	callReply       = `{"jsonrpc":"2.0","id":"c","result":{"content":[ ]}}`
	cancelLine      = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}`
	listChanged     = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
)

func aborted(id, reason string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32001,"message":"mcp-agents: server did not answer (` + reason + `)"}}`
}

func unavailable(reason string) string {
	return `{"jsonrpc":"2.0","id":"c","result":{"content":[{"type":"text","text":"mcp-agents: server is not available: ` + reason +
		`. The next call tries again."}],"isError":true}}`
}

// session runs a test in a bubble.
func session(t *testing.T, name string, cfg Config, set func(*bench), play func(t *testing.T, b *bench)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { play(t, startSession(t, cfg, set)) })
	})
}

// serve takes a client through the handshake.
func (b *bench) serve() {
	b.Helper()
	b.Send(initializeLine)
	require.Equal(b, initializeLine+"\n", b.child().takes())
	b.child().says(initializeReply + "\n")
	b.Expect(initializeReply)
}

func TestSessionPassesFrames(t *testing.T) {
	session(t, "both ways as they are", Config{}, nil, func(t *testing.T, b *bench) {
		b.serve()
		b.Send(initializedLine, callLine, `{"id":7,"result":{}}`, `no JSON`)
		assert.Equal(t, initializedLine+"\n"+callLine+"\n"+`{"id":7,"result":{}}`+"\nno JSON\n", b.child().takes())
		b.child().says(`{"method":"n" }` + "\n" + callReply + "\n" + `{"id":7,"method":"roots/list"}` + "\nno JSON\n")
		b.Expect(`{"method":"n" }`, callReply, `{"id":7,"method":"roots/list"}`, "no JSON")
		b.child().ends(3)
		b.end(3)
	})
	session(t, "the child's end aborts what is open", Config{}, nil, func(t *testing.T, b *bench) {
		b.serve()
		b.Send(callLine)
		b.child().ends(7)
		b.Expect(aborted(`"c"`, "server exited with code 7"))
		b.end(7)
	})
	session(t, "a long line streams", Config{}, nil, func(t *testing.T, b *bench) {
		b.serve()
		b.Send(callLine)
		long := `{"jsonrpc":"2.0","id":"c","result":{"x":"` + strings.Repeat("x", MaxLine) + `"}}`
		b.child().says(long + "\n")
		b.Expect(long)
		b.child().ends(0)
		assert.Empty(t, b.Output(), "the call is answered")
		b.end(0)
	})
}

func TestSessionWithoutChild(t *testing.T) {
	session(t, "the handshake is answered, and replayed to the next child", Config{}, func(b *bench) { b.failures = 2 }, func(t *testing.T, b *bench) {
		b.Send(initializeLine)
		b.Expect(localInitialize)
		b.Send(initializedLine, listLineOf, `{"jsonrpc":"2.0","id":3,"method":"ping"}`, `{"jsonrpc":"2.0","id":4,"method":"resources/list"}`)
		b.Expect(localList, `{"jsonrpc":"2.0","id":3,"result":{}}`, `{"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"Method not found"}}`)
		b.Send(callLine)
		b.Expect(unavailable("no engine"))
		b.Send(callLine)
		assert.Equal(t, strings.Replace(initializeLine, `"id":1`, `"id":"ours/initialize/3"`, 1)+"\n", b.child().takes())
		b.child().says(`{"jsonrpc":"2.0","id":"ours/initialize/3","result":{}}` + "\n")
		assert.Equal(t, initializedLine+"\n"+`{"id":"ours/tools-list/3","jsonrpc":"2.0","method":"tools/list"}`+"\n"+callLine+"\n", b.child().takes())
		b.child().says(`{"jsonrpc":"2.0","id":"ours/tools-list/3","result":{"tools":[{"name":"x"}]}}` + "\n" + callReply + "\n")
		b.Expect(listChanged, callReply)
		b.child().ends(0)
		b.end(0)
	})
	session(t, "a child that ends before it serves does not cost the next one the handshake", Config{}, nil, func(t *testing.T, b *bench) {
		b.Send(initializeLine)
		b.child().ends(1)
		b.Expect(localInitialize)
		b.Send(callLine)
		require.Len(t, b.children, 2)
		assert.Contains(t, b.child().takes(), `"ours/initialize/2"`)
		b.child().says(`{"jsonrpc":"2.0","id":"ours/initialize/2","error":{}}` + "\n")
		b.Expect(unavailable("it refused the client's initialize"))
		b.Disconnect()
		b.end(0)
	})
	session(t, "a slow one", Config{}, func(b *bench) { b.slow = 20 * time.Second }, func(t *testing.T, b *bench) {
		b.Send(initializeLine, initializedLine, callLine)
		pass(DefaultHandshakeTimeout)
		b.Expect(localInitialize)
		pass(15 * time.Second)
		assert.Equal(t, strings.Replace(initializeLine, `"id":1`, `"id":"ours/initialize/1"`, 1)+"\n", b.child().takes())
		b.child().says(`{"jsonrpc":"2.0","id":"ours/initialize/1","result":{}}` + "\n")
		assert.Equal(t, initializedLine+"\n"+callLine+"\n", b.child().takes(), "the notification comes once")
		b.child().ends(0)
		b.end(0)
	})
	session(t, "a late answer is dropped", Config{}, nil, func(t *testing.T, b *bench) {
		b.Send(initializeLine)
		pass(DefaultHandshakeTimeout)
		b.Expect(localInitialize)
		b.child().says(initializeReply + "\n")
		assert.Empty(t, b.Output())
		b.child().ends(4)
		b.end(4)
	})
}

func TestSessionLimitsOfAStart(t *testing.T) {
	session(t, "a call waits for ReadyTimeout", Config{ReadyTimeout: 7 * time.Second}, nil, func(t *testing.T, b *bench) {
		b.Send(initializeLine)
		pass(time.Hour)
		b.Expect(localInitialize)
		assert.Len(t, b.children, 1, "without a call the child may take its time")
		b.Send(callLine)
		pass(7 * time.Second)
		b.Expect(unavailable("it has not answered initialize within 7s"))
		b.Disconnect()
		b.end(0)
	})
	session(t, "OpeningTimeout", Config{OpeningTimeout: time.Minute}, func(b *bench) { b.failures = 1 }, func(t *testing.T, b *bench) {
		b.Send(initializeLine, callLine)
		pass(time.Minute)
		b.Expect(localInitialize, unavailable("it has not answered initialize within 1m0s"))
		b.Disconnect()
		b.end(0)
	})
	session(t, "MaxOwed", Config{MaxOwed: 2}, nil, func(t *testing.T, b *bench) {
		b.serve()
		b.Send(listLineOf, callLine)
		pass(DefaultHandshakeTimeout)
		b.Expect(localList)
		b.Send(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
		pass(DefaultHandshakeTimeout)
		b.Expect(`{"jsonrpc":"2.0","id":3,"result":{}}`, aborted(`"c"`, "late-response suppression limit reached"))
		b.end(1)
	})
}

func TestSessionCancel(t *testing.T) {
	session(t, "of a call that waits", Config{}, func(b *bench) { b.slow = time.Second }, func(t *testing.T, b *bench) {
		b.Send(callLine, cancelLine)
		pass(2 * time.Second)
		assert.Empty(t, b.child().takes())
		b.Disconnect()
		b.child().ends(0)
		assert.Empty(t, b.Output())
		b.end(0)
	})
	session(t, "of a call that the child has", Config{}, nil, func(t *testing.T, b *bench) {
		b.serve()
		b.Send(callLine, cancelLine)
		assert.Equal(t, callLine+"\n"+cancelLine+"\n", b.child().takes())
		b.child().ends(0)
		assert.Empty(t, b.Output(), "it needs no answer")
		b.end(0)
	})
	session(t, "of an answer from here is nothing to the child", Config{}, func(b *bench) { b.failures = 1 }, func(t *testing.T, b *bench) {
		b.Send(`{"jsonrpc":"2.0","id":"c","method":"ping"}`)
		b.Output()
		b.Send(cancelLine, strings.Replace(callLine, `"c"`, `5`, 1))
		assert.NotContains(t, b.child().takes(), "cancelled")
		b.Disconnect()
		b.child().ends(0)
		b.end(0)
	})
}

func TestSessionIDs(t *testing.T) {
	session(t, "reserved ones are refused", Config{}, nil, func(t *testing.T, b *bench) {
		b.Send(`{"jsonrpc":"2.0","id":"ours/x","method":"ping"}`)
		b.Expect(`{"jsonrpc":"2.0","id":"ours/x","error":{"code":-32600,"message":"reserved"}}`)
		assert.Empty(t, b.child().takes())
		b.Disconnect()
		b.child().ends(0)
		b.end(0)
	})
	session(t, "one in flight must not be used again", Config{}, nil, func(t *testing.T, b *bench) {
		b.serve()
		b.Send(callLine, callLine)
		b.Expect(aborted(`"c"`, `request id \"c\" was reused while it was in flight`))
		b.end(1)
	})
}

func TestSessionEndOfTheClient(t *testing.T) {
	session(t, "last answers still go out", Config{}, nil, func(t *testing.T, b *bench) {
		b.serve()
		b.Send(callLine)
		b.Disconnect()
		assert.True(t, b.child().eof)
		b.child().says(callReply + "\n")
		b.Expect(callReply)
		b.child().ends(5)
		b.end(5)
	})
	session(t, "a child that stays", Config{}, nil, func(t *testing.T, b *bench) {
		b.serve()
		start := time.Now()
		b.Disconnect()
		b.end(0)
		assert.Equal(t, ClientGoneGrace, time.Since(start))
		assert.Contains(t, b.Log.String(), "plain passthrough finalize: client disconnected and server did not end")
	})
	session(t, "no child yet", Config{}, func(b *bench) { b.slow = time.Hour }, func(t *testing.T, b *bench) {
		b.Send(initializeLine, callLine)
		b.Disconnect()
		b.Expect(localInitialize)
		b.end(0)
	})
}

func TestSessionHalfLine(t *testing.T) {
	half := `{"method":"x","p":"` + strings.Repeat("x", MaxLine)
	session(t, "that never ends ends the session when an answer waits behind it", Config{FlushStall: 30 * time.Second}, nil, func(t *testing.T, b *bench) {
		b.serve()
		b.child().says(half)
		b.Output()
		b.Send(listLineOf)
		pass(DefaultHandshakeTimeout)
		assert.Empty(t, b.Output())
		pass(30 * time.Second)
		assert.Equal(t, "\n"+localList+"\n", b.Output())
		b.end(1)
	})
	session(t, "that ends lets it out", Config{}, nil, func(t *testing.T, b *bench) {
		b.serve()
		b.child().says(half)
		b.Output()
		b.Send(listLineOf)
		pass(DefaultHandshakeTimeout)
		b.child().says(`"}` + "\n")
		b.Expect(`"}`, localList)
		pass(time.Hour)
		assert.Empty(t, b.Code)
		b.child().ends(0)
		b.end(0)
	})
}

func TestSessionRestart(t *testing.T) {
	session(t, "puts questions of the handshake again", Config{HoldsWhileClosing: true}, nil, func(t *testing.T, b *bench) {
		b.Send(initializeLine)
		first := b.child()
		require.Equal(t, initializeLine+"\n", first.takes())
		restarted := false
		b.loop(func() {
			b.policy.Requeue(b.policy.InOrder())
			b.policy.Restart(func(err error) { restarted = err == nil })
		})
		require.Len(t, b.children, 2)
		assert.True(t, restarted)
		assert.Equal(t, initializeLine+"\n", b.child().takes(), "as itself, and once")
		b.child().says(initializeReply + "\n")
		b.Expect(initializeReply)
		b.child().ends(0)
		b.end(0)
	})
}

func TestSameTools(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{`{"tools":[{"name":"a","x":1}]}`, `{"tools": [ {"x":1,"name":"\u0061"} ],"more":1}`, true},
		{`{"tools":[{"name":"a"}]}`, `{"tools":[{"name":"b"}]}`, false},
		{`{"tools":[{"name":"a"},{"name":"b"}]}`, `{"tools":[{"name":"b"},{"name":"a"}]}`, false},
		{`{"tools":[]}`, `no JSON`, false},
	} {
		assert.Equal(t, tt.want, sameTools([]byte(tt.a), []byte(tt.b)), "%s %s", tt.a, tt.b)
	}
}
