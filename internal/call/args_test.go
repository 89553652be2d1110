package call

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tool is a tool as a client has it.
func tool(t require.TestingT, schema string) []*mcp.Tool {
	var v any
	require.NoError(t, json.Unmarshal([]byte(schema), &v))
	return []*mcp.Tool{{Name: "t", InputSchema: v}}
}

const everyType = `{"type":"object","properties":{"s":{"type":"string"},"b":{"type":"boolean"},"i":{"type":"integer"},"n":{"type":"number"},
"a":{"type":"array"},"o":{"type":"object"},"in":{"type":["null","integer"]},"any":{}},"required":["s"],"additionalProperties":false}`

func TestTyped(t *testing.T) {
	for given, want := range map[string]string{
		"s=":          `""`,
		"s=12":        `"12"`,
		"s=a=b":       `"a=b"`,
		"b=true":      `true`,
		"i=-7":        `-7`,
		"n=1.50":      `1.50`,
		"a=[1]":       `[1]`,
		`o={"x": 1}`:  `{"x":1}`,
		"in=3":        `3`,
		"any=true":    `"true"`,
		"s=ü\n\x00 z": `"ü\n\u0000 z"`,
	} {
		key, _, _ := strings.Cut(given, "=")
		args, err := parseArgs(Options{Args: []string{given}})
		require.NoError(t, err, given)
		if key != "s" {
			args = append(args, argument{key: "s", text: "x"})
		}
		out, err := typed("t", tool(t, everyType), args)
		require.NoError(t, err, given)
		b, err := json.Marshal(out[key])
		require.NoError(t, err)
		assert.Equal(t, want, string(b), given)
	}
	for given, want := range map[string]string{
		"b=1":        `"b" of t must be true or false`,
		"i=1.5":      `"i" of t must be an integer`,
		"i=":         `"i" of t must be an integer`,
		"n=x":        `"n" of t must be a number`,
		`n="1"`:      `"n" of t must be a number`,
		"n=":         `"n" of t must be a number`,
		"a={":        `"a" of t must be JSON (an array)`,
		"nothing=":   `t has no argument "nothing": it has a, any, b, i, in, n, o, s`,
		"any=secret": `t requires the argument "s"`,
	} {
		args, err := parseArgs(Options{Args: []string{given}})
		require.NoError(t, err, given)
		_, err = typed("t", tool(t, everyType), args)
		var usage *UsageError
		require.ErrorAs(t, err, &usage, given)
		assert.ErrorContains(t, err, want, given)
		assert.NotContains(t, err.Error(), "secret", "values are not repeated")
	}
}

// A schema that says nothing, as a pass-through tool may have, takes all.
func TestOpenSchema(t *testing.T) {
	out, err := typed("t", tool(t, `{"type":"object"}`), []argument{{key: "x", text: "1"}, {key: "y", value: 1.0, isJSON: true}})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"x": "1", "y": 1.0}, out)
}

func TestRelativeCwd(t *testing.T) {
	dir := t.TempDir()
	for _, o := range []Options{{Args: []string{"cwd=a/../b"}}, {JSONArgs: []string{`cwd="b"`}}} {
		o.Dir = dir
		args, err := parseArgs(o)
		require.NoError(t, err)
		assert.Equal(t, filepath.Join(dir, "b"), workDir(o, args))
	}
	assert.Equal(t, dir, workDir(Options{Dir: dir}, []argument{{key: "cwd", value: 1.0, isJSON: true}}))
}

func TestStdinIsBounded(t *testing.T) {
	_, err := parseArgs(Options{Args: []string{"p=@-"}, Stdin: strings.NewReader(strings.Repeat("x", maxInput+1))})
	assert.ErrorContains(t, err, "is over 8 MiB")
	args, err := parseArgs(Options{Args: []string{"p=@-"}, Stdin: strings.NewReader(strings.Repeat("x", maxInput))})
	require.NoError(t, err)
	assert.Len(t, args[0].text, maxInput)
}

// FuzzConvert: what is accepted is JSON of the type, and is the text that was
// given.
func FuzzConvert(f *testing.F) {
	for _, kind := range []string{"boolean", "integer", "number", "object", "array", "string", ""} {
		f.Add("1", kind)
	}
	f.Fuzz(func(t *testing.T, text, kind string) {
		v, err := convert(text, kind)
		if err != nil {
			return
		}
		b, err := json.Marshal(v)
		require.NoError(t, err)
		var back any
		require.NoError(t, json.Unmarshal(b, &back))
		switch kind {
		case "boolean":
			assert.Equal(t, text, string(b))
		case "integer", "number":
			assert.IsType(t, 1.0, back)
		case "object", "array":
			assert.JSONEq(t, text, string(b))
		}
	})
}
