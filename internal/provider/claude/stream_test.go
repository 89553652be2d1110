package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParseEvent(t *testing.T) {
	for name, tt := range map[string]struct {
		line   string
		status string
		result *result
		alive  bool
	}{
		"init":              {`{"type":"system","subtype":"init"}`, "reviewer initialized", nil, true},
		"another of system": {`{"type":"system","subtype":"compact_boundary"}`, "reviewing", nil, true},
		"assistant":         {`{"type":"assistant","message":{}}`, "reviewing", nil, true},
		"stream event":      {`{"type":"stream_event"}`, "reviewing", nil, true},
		"tool progress":     {`{"type":"tool_progress"}`, "inspecting repository", nil, true},
		"tool summary":      {`{"type":"tool_use_summary"}`, "inspecting repository", nil, true},
		"retry":             {`{"type":"api_retry"}`, "waiting for provider", nil, true},
		"rate limit":        {`{"type":"rate_limit_event"}`, "waiting for provider", nil, true},
		"result":            {` {"type":"result","result":"x"} `, "", &result{text: "x"}, true},
		"error":             {`{"type":"result","subtype":"success","is_error":true,"result":"x"}`, "", &result{text: "x", isError: true}, true},
		"no text":           {`{"type":"result","result":7}`, "", &result{}, true},
		"an error in words": {`{"type":"result","result":"x","is_error":"true"}`, "", &result{text: "x"}, true},
		"unknown":           {`{"type":"of_a_later_release"}`, "", nil, true},
		"no type":           {`{}`, "", nil, true},
		"a type of numbers": {`{"type":7}`, "", nil, true},
		"another case":      {`{"Type":"result","result":"x"}`, "", nil, true},
		"the user's":        {`{"type":"user","message":{"content":"{\"type\":\"result\"}"}}`, "", nil, true},
		"a list":            {`[{"type":"result"}]`, "", nil, false},
		"text":              {`hello`, "", nil, false},
		"half an object":    {`{"type":"result"`, "", nil, false},
		"nothing":           {"", "", nil, false},
		"two objects":       {`{"type":"result"}{"type":"result"}`, "", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			e, alive := parseEvent([]byte(tt.line))
			assert.Equal(t, tt.alive, alive)
			assert.Equal(t, event{status: tt.status, result: tt.result}, e)
		})
	}
}

// TestReadLines: however the stream is cut, the lines are the same.
func TestReadLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.StringMatching(`[a-z]{0,40}`), 1, 20).Draw(t, "lines")
		size := rapid.IntRange(1, 50).Draw(t, "size")
		var got []string
		err := readLines(&chunks{[]byte(strings.Join(lines, "\n")), size}, 40, func(b []byte) { got = append(got, string(b)) })
		require.NoError(t, err)
		want := lines
		if want[len(want)-1] == "" { // nothing follows the last line break
			want = want[:len(want)-1]
		}
		require.Equal(t, append([]string{}, want...), append([]string{}, got...))
	})
}

type chunks struct {
	data []byte
	size int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.data[:min(c.size, len(c.data))])
	c.data = c.data[n:]
	return n, nil
}

func TestReadLinesEnds(t *testing.T) {
	none := func([]byte) {}
	require.NoError(t, readLines(strings.NewReader("12345\n12345"), 5, none))
	require.ErrorIs(t, readLines(strings.NewReader("12345\n123456"), 5, none), errEventTooLong)
	require.ErrorIs(t, readLines(strings.NewReader("123456\n"), 5, none), errEventTooLong)
	require.ErrorIs(t, readLines(iotest.ErrReader(io.ErrClosedPipe), 5, none), io.ErrClosedPipe)
	require.ErrorIs(t, readLines(io.MultiReader(strings.NewReader("12"), iotest.ErrReader(errors.ErrUnsupported)), 5, func(b []byte) {
		assert.Equal(t, "12", string(b), "what was there counts")
	}), errors.ErrUnsupported)
}

func FuzzParseEvent(f *testing.F) {
	for _, seed := range []string{`{"type":"system","subtype":"init"}`, `{"type":"result","result":"x","is_error":true}`, `[]`, "\xff", `{"type":{}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		e, alive := parseEvent(line)
		if !alive {
			require.Equal(t, event{}, e)
		} else {
			require.True(t, json.Valid(bytes.TrimSpace(line)))
		}
	})
}

func FuzzReadLines(f *testing.F) {
	f.Add([]byte("a\nb\n\nc"), 3)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		var got []byte
		err := readLines(&chunks{data, max(1, size%100)}, 64, func(b []byte) {
			require.LessOrEqual(t, len(b), 64)
			require.NotContains(t, string(b), "\n")
			got = append(append(got, b...), '\n')
		})
		if err == nil {
			require.Equal(t, strings.TrimSuffix(string(data), "\n"), strings.TrimSuffix(string(got), "\n"))
		}
	})
}

func FuzzParseResult(f *testing.F) {
	for _, seed := range []string{`{"type":"result","result":"x"}`, `[{"type":"result","result":1},7]`, `[`, `{}`, "plain"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, output string) {
		if r, ok := parseResult(output); !ok {
			require.Equal(t, result{}, r)
		}
	})
}

func TestHasSettings(t *testing.T) {
	root := t.TempDir()
	deep := filepath.Join(root, "a", "b")
	require.NoError(t, os.MkdirAll(deep, 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(filepath.Dir(root), ".claude"), 0o755))
	above := filepath.Join(filepath.Dir(root), ".claude", "settings.json")
	require.NoError(t, os.WriteFile(above, nil, 0o644))
	assert.False(t, hasSettings(deep, root), "what is above the root is not seen inside")
	for _, dir := range []string{deep, filepath.Join(root, "a"), root} {
		for _, name := range []string{"settings.json", "settings.local.json"} {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, ".claude"), 0o755))
			path := filepath.Join(dir, ".claude", name)
			require.NoError(t, os.Symlink("nowhere", path), "a link that leads nowhere yet")
			assert.True(t, hasSettings(deep, root), path)
			require.NoError(t, os.Remove(path))
			assert.False(t, hasSettings(deep, root))
		}
	}
}

func TestBaseURL(t *testing.T) {
	for url, want := range map[string]string{
		"http://a:1": "http://a:1", "http://a:1/": "http://a:1", "http://a:1/v1": "http://a:1", "http://a:1/v1/": "http://a:1",
		"https://a/gateway/v1": "https://a/gateway", "https://a/v1x": "https://a/v1x",
	} {
		assert.Equal(t, want, baseURL(url))
	}
}
