package mcp

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var idCases = []struct {
	raw  string
	kind IDKind
	key  string
}{
	{`0`, NumberID, "number:0"},
	{`-0`, NumberID, "number:-0"},
	{`-1`, NumberID, "number:-1"},
	{`1`, NumberID, "number:1"},
	{`1.0`, NumberID, "number:1.0"},
	{`1.5`, NumberID, "number:1.5"},
	{`1e2`, NumberID, "number:1e2"},
	{`100`, NumberID, "number:100"},
	{`1e20`, NumberID, "number:1e20"},
	{`9007199254740992`, NumberID, "number:9007199254740992"},
	{`9007199254740993`, NumberID, "number:9007199254740993"},
	{`18446744073709551616`, NumberID, "number:18446744073709551616"},
	{`""`, StringID, "string:"},
	{`"1"`, StringID, "string:1"},
	{`"number:1"`, StringID, "string:number:1"},
	{`"é"`, StringID, "string:é"},
	{`" a "`, StringID, "string: a "},
	{`"a\"}{\\"`, StringID, `string:a"}{\`},
	{`"\ud800"`, StringID, `rawstring:"\ud800"`},
	{`"\ud801"`, StringID, `rawstring:"\ud801"`},
	{"\"\xff\"", StringID, "rawstring:\"\xff\""},
	{`"` + strings.Repeat("x", 200) + `"`, StringID, "string:" + strings.Repeat("x", 200)},
}

func TestIDsSurviveAndDiffer(t *testing.T) {
	keys := map[string]string{}
	for _, c := range idCases {
		for _, body := range []string{
			`{"jsonrpc":"2.0","id":` + c.raw + `,"method":"m","params":{"id":99,"arguments":{"id":"no"}}}`,
			`{"params":{"id":99,"s":"\"id\":98,","arguments":{"id":"no"}},"method":"m","id": ` + c.raw + ` ,"jsonrpc":"2.0"}`,
		} {
			env, err := ParseEnvelope([]byte(body))
			require.NoError(t, err, body)
			assert.Equal(t, c.raw, string(env.ID.Raw))
			assert.Equal(t, c.kind, env.ID.Kind)
			assert.Equal(t, c.key, env.ID.Key())
			assert.Equal(t, env, ScanPrefix([]byte(body)), "scan and parse agree")

			answer, err := EncodeResponse(env.ID, &Response{Result: 1})
			require.NoError(t, err)
			assert.Equal(t, `{"jsonrpc":"2.0","id":`+c.raw+`,"result":1}`, string(answer))
		}
		assert.NotContains(t, keys, c.key, "%s and %s", c.raw, keys[c.key])
		keys[c.key] = c.raw
	}
}

func TestIDEqualStrings(t *testing.T) {
	assert.Equal(t, ParseID([]byte(`"abc"`)).Key(), ParseID([]byte(` "\u0061bc" `)).Key())
}

func TestIDOfOtherTypesIsAnsweredAsNull(t *testing.T) {
	for raw, kind := range map[string]IDKind{`null`: NullID, `{}`: OtherID, `[1]`: OtherID, `true`: OtherID, `01`: OtherID, ``: AbsentID} {
		id := ParseID([]byte(raw))
		assert.Equal(t, kind, id.Kind, raw)
		assert.False(t, id.Usable(), raw)
		assert.Empty(t, id.Key(), raw)
		answer, err := EncodeResponse(id, &Response{})
		require.NoError(t, err)
		assert.Equal(t, `{"jsonrpc":"2.0","id":null,"result":null}`, string(answer))
		inside, err := json.Marshal(id)
		require.NoError(t, err)
		assert.Equal(t, "null", string(inside))
	}
}

func TestIDDoesNotPinItsMessage(t *testing.T) {
	data := []byte(`{"id":12}`)
	env, err := ParseEnvelope(data)
	require.NoError(t, err)
	clear(data)
	assert.Equal(t, "12", string(env.ID.Raw))
}

func TestEnvelope(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     Envelope
	}{
		{"names match with case", `{"ID":1,"Method":"x","id":2,"METHOD":"y"}`, Envelope{ID: ParseID([]byte("2"))}},
		{"escaped names", `{"\u0069d":1,"m\u0065thod":"x\ny"}`, Envelope{ID: ParseID([]byte("1")), Method: "x\ny", HasMethod: true}},
		{"last one wins", `{"id":1,"method":"a","id":2,"method":"b"}`, Envelope{ID: ParseID([]byte("2")), Method: "b", HasMethod: true}},
		{"method of another type", `{"id":1,"method":5}`, Envelope{ID: ParseID([]byte("1"))}},
		{"params", ` { "method" : "m" , "params" : [ 1 ] } `, Envelope{Method: "m", HasMethod: true, Params: json.RawMessage("[ 1 ]")}},
		{"result and null error", `{"id":1,"result":null,"error":null}`,
			Envelope{ID: ParseID([]byte("1")), Result: json.RawMessage("null"), Error: json.RawMessage("null")}},
		{"empty object", `{}`, Envelope{}},
		{"array", `[{"id":1,"method":"m"}]`, Envelope{}},
		{"empty array", `[]`, Envelope{}},
		{"string", `"id"`, Envelope{}},
		{"number", `5`, Envelope{}},
		{"null", `null`, Envelope{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseEnvelope([]byte(c.in))
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestEnvelopeSyntax(t *testing.T) {
	for _, in := range []string{"", " ", "{", `{"id":1`, `{"id":1}}`, `{"id":01}`, `{"id":1}{"id":2}`, "hello", `{"id":1,}`, "{\"a\":\"\n\"}"} {
		_, err := ParseEnvelope([]byte(in))
		require.ErrorIs(t, err, ErrSyntax, in)
	}
}

func nested(depth int) string {
	return `{"params":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `,"id":"deep","method":"m"}`
}

func TestEnvelopeDepth(t *testing.T) {
	for _, depth := range []int{50, 100, 126, MaxDepth} {
		env, err := ParseEnvelope([]byte(nested(depth)))
		require.NoError(t, err, depth)
		assert.Equal(t, "string:deep", env.ID.Key())
	}
	env, err := ParseEnvelope([]byte(nested(MaxDepth + 1)))
	require.ErrorIs(t, err, ErrTooDeep)
	assert.Equal(t, "string:deep", env.ID.Key(), "its sender can be answered")

	_, err = ParseEnvelope([]byte(strings.Repeat("[", 2_000_000)))
	require.ErrorIs(t, err, ErrTooDeep)
	_, err = ParseEnvelope([]byte(`"` + strings.Repeat("[", 2_000_000) + `"`))
	require.NoError(t, err, "brackets in a string nest nothing")
}

func TestEnvelopeKinds(t *testing.T) {
	for _, c := range []struct {
		in                     string
		notification, response bool
		code                   int
	}{
		{`{"id":1,"method":"m"}`, false, false, 0},
		{`{"id":"","method":"m"}`, false, false, 0},
		{`{"method":"m"}`, true, false, 0},
		{`{"id":1,"result":{}}`, false, true, 0},
		{`{"id":null,"error":{}}`, false, true, 0},
		{`{"id":null,"method":"m"}`, false, false, CodeInvalidRequest},
		{`{"id":{},"method":"m"}`, false, false, CodeInvalidRequest},
		{`{"id":1,"method":null}`, false, false, CodeInvalidRequest},
		{`{"id":1}`, false, false, CodeInvalidRequest},
		{`{"ID":1}`, false, false, CodeInvalidRequest},
		{`[]`, false, false, CodeInvalidRequest},
		{`7`, false, false, CodeInvalidRequest},
	} {
		env, err := ParseEnvelope([]byte(c.in))
		require.NoError(t, err)
		assert.Equal(t, c.notification, env.IsNotification(), c.in)
		assert.Equal(t, c.response, env.IsResponse(), c.in)
		if c.code == 0 {
			assert.Nil(t, env.Check(), c.in)
		} else if e := env.Check(); assert.NotNil(t, e, c.in) {
			assert.Equal(t, c.code, e.Code, c.in)
		}
	}
}

func TestScanPrefix(t *testing.T) {
	fill := strings.Repeat("x", 2*PrefixSize)
	for _, c := range []struct {
		name, in string
		key      string
		response bool
	}{
		{"first", `{"jsonrpc":"2.0","id":5,"result":{"content":"` + fill, "number:5", true},
		{"string", `{"id":"a","error":"` + fill, "string:a", true},
		{"behind nested ids", `{"params":{"id":1,"a":[{"id":2}]},"s":"{\"id\":3,","id":4,"result":"` + fill, "number:4", true},
		{"request of the same id", `{"id":5,"method":"elicit","params":{"x":"` + fill, "number:5", false},
		{"method cut off", `{"id":5,"method":"` + fill, "number:5", false},
		{"only nested", `{"params":{"id":1,"x":"` + fill + `"},"id":2}`, "", false},
		{"only in an escaped string", `{"x":"\\\",\"id\":1,` + fill, "", false},
		{"cut inside the id", `{"x":"` + strings.Repeat("x", PrefixSize-len(`{"x":"","id":12`)) + `","id":123,"result":1}`, "", false},
		{"id in the last byte", `{"x":"` + strings.Repeat("x", PrefixSize-len(`{"x":"","id":"1"`)) + `","id":"1","result":1}`, "string:1", false},
		{"raw line feed in the id", "{\"id\":\"a\nb\",\"result\":\"" + fill, "", true},
		{"array", `[{"id":1},"` + fill, "", false},
		{"junk", fill, "", false},
		{"junk after the id", `{"id":1 junk` + fill, "number:1", false},
		{"empty", "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := ScanPrefix([]byte(c.in))
			assert.Equal(t, c.key, env.ID.Key())
			assert.Equal(t, c.response, env.IsResponse())
		})
	}
}

// Whatever is around it, the id of the top level is found by both ways.
func TestScanPrefixAgreesWithParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := []string{`"id":` + rapid.SampledFrom(idCases).Draw(t, "id").raw}
		for i := rapid.IntRange(0, 4).Draw(t, "others"); i > 0; i-- {
			value, err := json.Marshal(map[string]any{"id": i, `"`: rapid.String().Draw(t, "text"), "n": []any{math.Pi, nil, `\`}})
			if err != nil {
				t.Fatal(err)
			}
			members = append(members, `"params":`+string(value))
		}
		body := []byte("{" + strings.Join(rapid.Permutation(members).Draw(t, "order"), " ,\n") + "}")
		env, err := ParseEnvelope(body)
		if err != nil {
			t.Fatal(err)
		}
		if len(body) <= PrefixSize && !assert.ObjectsAreEqual(env, ScanPrefix(body)) {
			t.Fatalf("%s: %v", body, env)
		}
	})
}

// Of JSON, Scan sees what ParseEnvelope sees.
func TestScanAgreesWithParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.SampledFrom([]string{`1`, `"a\"b"`, `null`, `{"id":7,"x":"}"}`, `[1,{"method":"no"}]`, `-0.5e3`, `"\\"`})
		member := rapid.Custom(func(t *rapid.T) string {
			return rapid.SampledFrom([]string{`"id"`, `"method"`, `"params"`, `"result"`, `"error"`, `"ID"`, `"\u0069d"`}).Draw(t, "key") +
				rapid.SampledFrom([]string{":", " : "}).Draw(t, "colon") + value.Draw(t, "value")
		})
		text := "{" + strings.Join(rapid.SliceOfN(member, 0, 6).Draw(t, "members"), " ,\t") + "}"
		want, err := ParseEnvelope([]byte(text))
		require.NoError(t, err)
		require.Equal(t, want, Scan([]byte(text)))
	})
}
