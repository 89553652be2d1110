package mcp

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The envelope is what a decoder of exact member names sees, and its id comes
// back in an answer as valid JSON.
func FuzzEnvelope(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{"id":2}}`, `{"ID":1,"id":"\u0031","id":null}`,
		`{"id":1e20,"result":[{"id":3}],"error":null}`, `[]`, `null`, `5`, `"x"`, `{`, `{"\u0069d":-0,"method":"\ud800"}`, nested(20),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		env, err := ParseEnvelope(data)
		assert.Equal(t, json.Valid(data), err == nil)
		answer, encodeErr := EncodeResponse(env.ID, &Response{Error: env.Check()})
		assert.NoError(t, encodeErr)
		assert.True(t, json.Valid(answer), "%s", answer)
		var want map[string]json.RawMessage
		if err != nil || json.Unmarshal(data, &want) != nil {
			return
		}
		assert.Equal(t, string(want["id"]), string(env.ID.Raw))
		assert.Equal(t, string(want["params"]), string(env.Params))
		assert.Equal(t, string(want["result"]), string(env.Result))
		assert.Equal(t, string(want["error"]), string(env.Error))
		if len(data) <= PrefixSize {
			assert.Equal(t, env, ScanPrefix(data), "scan and parse agree")
		}
	})
}

// A prefix of a message gives the id of the whole or none, never another one.
func FuzzScanPrefix(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":5,"result":{"id":6}}`, `{"params":{"id":1,"x":"\"id\":2"},"id":"a\"}"}`,
		`{"x":"\\","id":1.5e+3}`, `[{"id":1}]`, `{"id":tru`, "{\"id\":\"a\nb\"}",
	} {
		f.Add([]byte(s), uint16(20))
	}
	f.Fuzz(func(t *testing.T, data []byte, cut uint16) {
		env := ScanPrefix(data[:min(len(data), int(cut))])
		assert.True(t, env.ID.Kind == AbsentID || env.ID.Kind == OtherID || json.Valid(env.ID.Raw))
		whole, err := ParseEnvelope(data)
		if err != nil || !env.ID.Usable() || bytes.Count(data, []byte("d\"")) > 1 || bytes.IndexByte(data, '\\') >= 0 {
			return // a repeated member may differ: the last one counts
		}
		assert.Equal(t, whole.ID, env.ID)
	})
}
