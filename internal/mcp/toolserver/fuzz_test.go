package toolserver

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/stdio"
)

// FuzzParams: whatever the parameters are, what is taken from them is of the
// right type, and a token is echoed byte for byte.
func FuzzParams(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a","arguments":{"b":1},"_meta":{"progressToken":"t"}}`, `{"name":"a","_meta":{"progressToken":1e999}}`,
		`{"name":null}`, `{"arguments":[]}`, `[]`, ``, `null`, `{"requestId":"7"}`, `{"protocolVersion":"2025-06-18"}`,
		`{"name":"\ud800","arguments":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, params []byte) {
		assert.Contains(t, protocolVersions, ProtocolVersion(params))
		if id := cancelledID(params); id.Usable() {
			assert.True(t, json.Valid(id.Raw))
		}
		call, fault := parseCall(params)
		if fault != nil {
			assert.Equal(t, mcp.CodeInvalidParams, fault.Code)
			return
		}
		_, ok := object(call.arguments)
		assert.True(t, ok, "arguments are an object")
		if call.token == nil {
			return
		}
		assert.Contains(t, string(params), string(call.token))
		var token any
		require.NoError(t, json.Unmarshal(call.token, &token))
		switch token.(type) {
		case string, float64:
		default:
			t.Errorf("token %s", call.token)
		}
	})
}

// FuzzSession: whatever lines come in, what goes out are answers and progress,
// one answer an id, and the server is alive at the end.
func FuzzSession(f *testing.F) {
	for _, seed := range []string{
		progressLine("1", "count", `{"to":3}`) + "\n" + cancelLine("1"), callLine("null", "zebra", "{}"), callLine("1", "panic", "{}"),
		"[]\n{junk\n123", `{"id":1,"method":"initialize"}` + "\n" + `{"id":1,"method":"ping"}`, `{"id":"` + "\xff" + `","method":"ping"}`,
	} {
		f.Add(seed)
	}
	server, err := New(Config{
		Tools: []Tool{PingTool(), testTools(new(record))[1]},
		Stdio: stdio.Options{DrainTimeout: time.Minute}, Log: plainLog(io.Discard, 0),
	})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, in string) {
		if strings.Contains(strings.ToLower(in), "content-") {
			t.Skip("a header takes what follows as its body, and answers leave as frames")
		}
		out := newOutput()
		last := "\n" + `{"jsonrpc":"2.0","id":"the last","method":"ping"}`
		require.NoError(t, server.Serve(t.Context(), io.NopCloser(strings.NewReader(in+last)), out))
		written := out.take()
		requireMessages(t, written)
		assert.Contains(t, written, `{"jsonrpc":"2.0","id":"the last","result":{}}`)
	})
}
