package model

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFill(t *testing.T) {
	for name, tt := range map[string]struct{ output, input, want string }{
		"a string":             {`{"jobId":"a-1"}`, `{"id":"{{jobId}}"}`, `{"id":"a-1"}`},
		"a number":             {`{"cursor": 12,"x":1}`, `{"c":"{{cursor}}"}`, `{"c":12}`},
		"in a JSON string":     {`"{\"jobId\":\"a\",\"cursor\":3}"`, `{"id":"{{jobId}}","c":"{{cursor}}"}`, `{"id":"a","c":3}`},
		"twice quoted":         {`[{"text":"{\\\"jobId\\\":\\\"a\\\"}"}]`, `{"id":"{{jobId}}"}`, `{"id":"a"}`},
		"the last":             {`{"n":1,"next":{"n":2}}`, `{"n":"{{n}}"}`, `{"n":2}`},
		"between words":        {`Wall time 1 s "n":5 end`, `{"n":"{{n}}"}`, `{"n":5}`},
		"part of a string not": {`{"n":1}`, `{"n":"a {{n}}"}`, `{"n":"a {{n}}"}`},
		"nothing to fill":      {``, `{"n":"{n}"}`, `{"n":"{n}"}`},
	} {
		t.Run(name, func(t *testing.T) {
			call, err := conversation{lastOutput: tt.output}.fill(ToolCall{Name: "x", Input: json.RawMessage(tt.input)})
			require.NoError(t, err)
			assert.JSONEq(t, tt.want, string(call.Input))
		})
	}
	for _, output := range []string{"", `{"other":1}`, `{"jobId":null}`, `{"jobId":{}}`} {
		_, err := conversation{lastOutput: output}.fill(ToolCall{Input: json.RawMessage(`{"id":"{{jobId}}"}`)})
		require.ErrorContains(t, err, "called jobId", output)
	}
}

// A script goes on with what a tool gave it, and the script itself stays as it is.
func TestStepIsFilled(t *testing.T) {
	sc := &Scenario{Steps: []Step{{Exec: &Exec{Cmd: "x"}}, {Tool: &ToolCall{Name: "t", Input: json.RawMessage(`{"id":"{{id}}"}`)}}}}
	for _, id := range []string{"1", "2"} {
		step, err := conversation{toolOutputs: 1, lastOutput: `{"id":` + id + `}`}.step(sc)
		require.NoError(t, err)
		assert.JSONEq(t, `{"id":`+id+`}`, string(step.Tool.Input))
	}
	_, err := conversation{toolOutputs: 1}.step(sc)
	require.Error(t, err)
}

func FuzzFill(f *testing.F) {
	f.Add(`{\"jobId\":\"a\"}`, `{"id":"{{jobId}}"}`)
	f.Add(`"n":-1`, `{"id":"{{n}}","m":["{{n}}"]}`)
	f.Fuzz(func(t *testing.T, output, input string) {
		if !json.Valid([]byte(input)) {
			return
		}
		call, err := conversation{lastOutput: output}.fill(ToolCall{Input: json.RawMessage(input)})
		if err == nil {
			require.True(t, json.Valid(call.Input), "%q", call.Input)
		}
	})
}
