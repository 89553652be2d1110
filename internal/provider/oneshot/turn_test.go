package oneshot

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mcpagents/internal/sandbox/wire"
)

func TestParseArguments(t *testing.T) {
	const normal = 5 * time.Second
	for name, tt := range map[string]struct {
		raw  string
		want Arguments
	}{
		"all":              {`{"prompt":"p","timeout_ms":7}`, Arguments{"p", 7 * time.Millisecond, nil}},
		"nothing":          {`{}`, Arguments{"", normal, nil}},
		"null":             {`{"prompt":null,"timeout_ms":null}`, Arguments{"", normal, nil}},
		"a number":         {`{"prompt":1.50}`, Arguments{"1.50", normal, nil}},
		"an object":        {`{"prompt":{"a":1}}`, Arguments{`{"a":1}`, normal, nil}},
		"ignored, in turn": {`{"z":1,"prompt":"p","a":{}}`, Arguments{"p", normal, []string{"z", "a"}}},
		"the last counts":  {`{"prompt":"a","prompt":"b","timeout_ms":1,"timeout_ms":2}`, Arguments{"b", 2 * time.Millisecond, nil}},
		"a whole float":    {`{"timeout_ms":2.0}`, Arguments{"", 2 * time.Millisecond, nil}},
		"a fraction":       {`{"timeout_ms":2.5}`, Arguments{"", normal, nil}},
		"a word":           {`{"timeout_ms":"2"}`, Arguments{"", normal, nil}},
		"zero":             {`{"timeout_ms":0}`, Arguments{"", 0, nil}},
		"less":             {`{"timeout_ms":-9e99}`, Arguments{"", -time.Millisecond, nil}},
		"very much":        {`{"timeout_ms":1e300}`, Arguments{"", maxMillis * time.Millisecond, nil}},
		"too much":         {`{"timeout_ms":1e999}`, Arguments{"", normal, nil}},
		"other names":      {`{"Prompt":"p"}`, Arguments{"", normal, []string{"Prompt"}}},
		"no object":        {`[]`, Arguments{"", normal, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, ParseArguments(json.RawMessage(tt.raw), normal))
		})
	}
	assert.Less(t, float64(maxMillis), float64(math.MaxInt64/int64(time.Millisecond)), "it fits a duration")
}

func FuzzParseArguments(f *testing.F) {
	f.Add(`{"prompt":"p","timeout_ms":7,"x":[]}`)
	f.Add(`{"prompt":`)
	f.Fuzz(func(t *testing.T, raw string) {
		a := ParseArguments(json.RawMessage(raw), time.Second)
		require.GreaterOrEqual(t, a.Timeout, -time.Millisecond)
	})
}

func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		limit := rapid.IntRange(0, 20).Draw(t, "limit")
		short, chars := Cut(text, limit)
		require.Equal(t, utf8.RuneCountInString(text), chars)
		require.True(t, strings.HasPrefix(text, short))
		require.Equal(t, min(chars, limit), utf8.RuneCountInString(short))
	})
}

func TestFailure(t *testing.T) {
	const budget = 2 * time.Second
	for name, tt := range map[string]struct {
		out  Output
		want string
	}{
		"none":            {Output{Exit: wire.Exit{Reason: wire.ReasonExit}, Stderr: []byte("noise")}, ""},
		"exit":            {Output{Exit: wire.Exit{Code: 3}}, "agy failed: exit code 3"},
		"exit and stderr": {Output{Exit: wire.Exit{Code: 3}, Stderr: []byte("\n why \n")}, "agy failed: exit code 3\nstderr:\nwhy"},
		"signal":          {Output{Exit: wire.Exit{Code: 143, Signal: 15, Reason: wire.ReasonSignal}}, "agy failed: killed by SIGTERM"},
		"strange signal":  {Output{Exit: wire.Exit{Code: 192, Signal: 64, Reason: wire.ReasonSignal}}, "agy failed: killed by signal 64"},
		"memory":          {Output{Exit: wire.Exit{Code: 137, Signal: 9, Reason: wire.ReasonMemory}}, "agy failed: killed by SIGKILL\nThe sandbox reached its memory limit: raise it with --memory."},
		"time":            {Output{TimedOut: true}, "agy failed: killed by SIGKILL\nIts time of 2000 ms was over; its sandbox was destroyed and nothing of it runs any more. It had printed nothing."},
		"time, words":     {Output{TimedOut: true, Stdout: []byte("x")}, "agy failed: killed by SIGKILL\nIts time of 2000 ms was over; its sandbox was destroyed and nothing of it runs any more."},
		"time, and more":  {Output{TimedOut: true, Closed: errors.New("x")}, "agy failed: killed by SIGKILL\nIts time of 2000 ms was over; its sandbox could not be verified gone. It had printed nothing."},
		"overflow":        {Output{Overflow: "stderr", Stderr: []byte("much")}, "agy stderr maxBuffer exceeded"},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tt.want, tt.out.Failure("agy", budget)) })
	}
}

func TestText(t *testing.T) {
	for want, out := range map[string]Output{
		"a":      {Stdout: []byte("a \n\t"), Stderr: []byte("b")},
		"b":      {Stderr: []byte("b\n")},
		"":       {Stdout: []byte(" \n"), Stderr: []byte("b")}, // blank is not nothing
		" c":     {Stdout: []byte(" c")},
		"\uFFFD": {Stdout: []byte("\xff")},
	} {
		assert.Equal(t, want, out.Text())
	}
}

func TestLastOfEach(t *testing.T) {
	assert.Equal(t, []string{"B=1", "A=3", "C"}, lastOfEach([]string{"A=1", "B=1", "A=2", "A=3", "C"}))
}

func TestStartFailure(t *testing.T) {
	live, gone := t.Context(), func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		return ctx
	}
	problem := errors.New("no image")
	for _, tt := range []struct {
		ctx  context.Context
		err  error
		text string
	}{
		{live, &StartError{problem}, "Failed to start agy: no image"},
		{live, &DirError{problem}, "Failed to prepare isolated working directory: no image"},
		{live, problem, "agy failed: no image"},
		{gone(ErrTimeout), ErrTimeout, "agy failed: killed by SIGKILL\nIts time was over before it could start."},
	} {
		text, err := StartFailure(tt.ctx, "agy", tt.err)
		require.NoError(t, err)
		assert.Equal(t, tt.text, text)
	}
	left := errors.New("the client left")
	_, err := StartFailure(gone(left), "agy", problem)
	require.ErrorIs(t, err, left)
	require.ErrorIs(t, err, context.Canceled)
}
