package mcp

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLookup(t *testing.T) {
	text := []byte(` { "a" : {"b":[1, {"c":"]}"} ,2.5e3 ]}, "a\u0062":true, "x":1,"x" : 2 } `)
	for _, c := range []struct {
		path []string
		want string
	}{
		{[]string{"a", "b"}, `[1, {"c":"]}"} ,2.5e3 ]`},
		{[]string{"ab"}, "true"},
		{[]string{"x"}, "2"},
		{[]string{"a", "c"}, ""},
		{[]string{"x", "y"}, ""},
	} {
		at, ok := Lookup(text, c.path...)
		assert.Equal(t, c.want != "", ok, c.path)
		assert.Equal(t, c.want, string(at.Of(text)), c.path)
	}
	at, _ := Lookup(text, "a", "b")
	elements := Elements(text, at)
	require.Len(t, elements, 3)
	assert.Equal(t, `{"c":"]}"}`, string(elements[1].Of(text)))
}

func TestSpliceLeavesTheRest(t *testing.T) {
	text := []byte(`{"id": 7 , "p":1e400}`)
	at, _ := Lookup(text, "id")
	assert.Equal(t, `{"id": "seven" , "p":1e400}`, string(Splice(text, Edit{at, []byte(`"seven"`)})))
	assert.Equal(t, `{"id": 7 , "p":1e400}`, string(text))
	assert.Equal(t, `"<&>"`, string(Encode("<&>")))
}

func FuzzMembers(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `{"a":{"b":[]}}`, `[{"a":"\""}]`, `{"a"`, `{"a":}`, `{"a":"`, "{\"a\":\xff}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want map[string]json.RawMessage
		valid := json.Unmarshal(text, &want) == nil && want != nil
		got := map[string]string{}
		for _, m := range Members(text, Span{0, len(text)}) {
			got[m.Name] = string(m.Value.Of(text))
		}
		Elements(text, Span{0, len(text)})
		if !valid {
			return
		}
		require.Len(t, got, len(want))
		for name, value := range want {
			require.Equal(t, string(value), got[name])
		}
	})
}
