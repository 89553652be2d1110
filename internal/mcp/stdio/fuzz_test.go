package stdio

import (
	"bytes"
	"encoding/json"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
)

// The cut of the bytes decides nothing, and no input makes the reader hold more
// than its limit or lose its place for good.
func FuzzReader(f *testing.F) {
	for _, c := range readerCases {
		if len(c.in) < 10_000 {
			f.Add([]byte(c.in), uint16(7), false)
			f.Add([]byte(c.in), uint16(1), true)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, cut uint16, through bool) {
		opts := ReaderOptions{MaxMessage: 200, KeepBlank: through, LinesOnly: through}
		whole := readAll(bytes.NewReader(data), opts)
		assert.Equal(t, whole, readAll(chunks(data, []int{int(cut%100) + 1, 3}), opts))
		assert.LessOrEqual(t, len(whole), len(data)+1)
		for _, m := range whole {
			assert.LessOrEqual(t, len(m), 300)
		}
		if through {
			opts.MaxMessage = 0
			var out bytes.Buffer
			r, w := NewReader(iotest.HalfReader(bytes.NewReader(data)), opts), NewWriter(&out)
			for m, err := r.Next(); err == nil; m, err = r.Next() {
				assert.NoError(t, w.Forward(m))
			}
			assert.Equal(t, data, append([]byte{}, out.Bytes()...), "lines pass byte for byte")
		}
	})
}

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
