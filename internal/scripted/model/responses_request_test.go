package model

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The ways in which Codex 0.153.4 declares its tools, reduced to what counts.
const (
	codeModeTools = `{"type":"additional_tools","role":"developer","tools":[{"type":"namespace","name":"functions","tools":[
		{"type":"custom","name":"exec"},{"type":"function","name":"wait"}]}]}`
	classicTools  = `[{"type":"function","name":"exec_command"},{"type":"function","name":"write_stdin"},{"type":"web_search"}]`
	patchTools    = `[{"type":"function","name":"exec_command"},{"type":"custom","name":"apply_patch"}]`
	shellCommand  = `[{"type":"function","name":"shell_command"}]`
	shellFunction = `[{"type":"function","name":"shell"},{"type":"function","name":"apply_patch"}]`
)

// request builds a body as Codex sends it. declare is codeModeTools or a
// tools[] list; outputs are those of the tool calls since the prompt.
func request(declare, prompt string, outputs ...string) string {
	items := []string{`{"type":"message","role":"developer","content":[{"type":"input_text","text":"be good"}]}`,
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>\n<cwd>/w</cwd>\n</environment_context>"}]}`}
	tools := declare
	if declare == codeModeTools {
		items, tools = append([]string{declare}, items...), "[]"
	}
	quoted, _ := json.Marshal(prompt)
	items = append(items, fmt.Sprintf(`{"type":"message","role":"user","content":[{"type":"input_text","text":%s}]}`, quoted))
	for i, out := range outputs {
		quoted, _ = json.Marshal(out)
		items = append(items, fmt.Sprintf(`{"type":"function_call","call_id":"call_%d","name":"exec_command","arguments":"{}"}`, i),
			fmt.Sprintf(`{"type":"function_call_output","call_id":"call_%d","output":%s}`, i, quoted))
	}
	return fmt.Sprintf(`{"model":"m","stream":true,"tools":%s,"input":[%s]}`, tools, strings.Join(items, ","))
}

func TestConversation(t *testing.T) {
	message := func(role, text string) string {
		return fmt.Sprintf(`{"type":"message","role":%q,"content":[{"type":"input_text","text":%q}]}`, role, text)
	}
	output := func(kind, id, value string) string {
		return fmt.Sprintf(`{"type":%q,"call_id":%q,"output":%s}`, kind, id, value)
	}
	tests := []struct {
		name  string
		input []string
		want  conversation
	}{
		{"prompt alone", []string{message("user", "hi")}, conversation{prompt: "hi"}},
		{"short form of a message", []string{`{"role":"user","content":"hi"}`}, conversation{prompt: "hi"}},
		{"two outputs", []string{message("user", "hi"), output("function_call_output", "a", `"1"`), output("custom_tool_call_output", "b", `"2"`)},
			conversation{prompt: "hi", toolOutputs: 2, lastOutput: "2"}},
		{"a call answered twice", []string{message("user", "hi"), output("function_call_output", "a", `"1"`), output("function_call_output", "a", `"2"`)},
			conversation{prompt: "hi", toolOutputs: 1, lastOutput: "2"}},
		{"the next turn starts anew", []string{message("user", "one"), output("function_call_output", "a", `"1"`), message("assistant", "done"), message("user", "two")},
			conversation{prompt: "two"}},
		{"its outputs are counted alone", []string{message("user", "one"), output("function_call_output", "a", `"1"`), message("user", "two"), output("function_call_output", "b", `"2"`)},
			conversation{prompt: "two", toolOutputs: 1, lastOutput: "2"}},
		{"what the CLI says is no prompt", []string{message("user", "hi"), output("function_call_output", "a", `"1"`), message("user", "<turn_aborted>\nx\n</turn_aborted>")},
			conversation{prompt: "hi", toolOutputs: 1, lastOutput: "1"}},
		{"attributes in its tag", []string{message("user", "hi"), message("user", `<ctx source="goal">x</ctx>`)}, conversation{prompt: "hi"}},
		{"a prompt that only starts with a tag", []string{message("user", "<b>bold</b> move")}, conversation{prompt: "<b>bold</b> move"}},
		{"directives inside a tag are a prompt", []string{message("user", "<p>[[text: a]]</p>")}, conversation{prompt: "<p>[[text: a]]</p>"}},
		{"output in parts", []string{message("user", "hi"), output("custom_tool_call_output", "a", `[{"type":"input_text","text":"x"},{"type":"input_text","text":"y"}]`)},
			conversation{prompt: "hi", toolOutputs: 1, lastOutput: "x\ny"}},
		{"output that is an object", []string{message("user", "hi"), output("function_call_output", "a", `{"ok":1}`)},
			conversation{prompt: "hi", toolOutputs: 1, lastOutput: `{"ok":1}`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req, err := parseResponsesRequest([]byte(`{"stream":true,"input":[` + strings.Join(tt.input, ",") + `]}`))
			require.NoError(t, err)
			assert.Equal(t, tt.want, req.conversation())
		})
	}
	t.Run("input is one string", func(t *testing.T) {
		req, err := parseResponsesRequest([]byte(`{"stream":true,"input":"hi"}`))
		require.NoError(t, err)
		assert.Equal(t, conversation{prompt: "hi"}, req.conversation())
	})
}

func TestParseResponsesRequestErrors(t *testing.T) {
	deep := strings.Repeat(`{"type":"namespace","tools":[`, 10) + strings.Repeat(`]}`, 10)
	for body, want := range map[string]string{
		``:                            "not a Responses API request",
		`[]`:                          "not a Responses API request",
		`{"input":[]}`:                "only streaming requests",
		`{"stream":true}`:             "input must be",
		`{"stream":true,"input":7}`:   "input must be",
		`{"stream":true,"input":[7]}`: "input must be",
		`{"stream":true,"input":[],"tools":[` + deep + `]}`:                                 "nested deeper than 8",
		`{"stream":true,"input":[{"type":"additional_tools","tools":[` + deep + `]}]}`:      "nested deeper than 8",
		"\x28\xb5\x2f\xfd compressed without saying so":                                     "not a Responses API request",
		`{"stream":true,"input":[]} trailing`:                                               "not a Responses API request",
		`{"stream":true,"input":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000): "not a Responses API request",
	} {
		_, err := parseResponsesRequest([]byte(body))
		require.ErrorContains(t, err, want, "%.60s", body)
	}
}

func TestConversationStep(t *testing.T) {
	sc := &Scenario{Steps: []Step{{Exec: &Exec{Cmd: "a"}}, {Exec: &Exec{Cmd: "b"}}}, Final: "all done"}
	long := strings.Repeat("é", 1600)
	tests := []struct {
		name string
		c    conversation
		sc   *Scenario
		want Step
	}{
		{"first", conversation{prompt: "go"}, sc, Step{Exec: &Exec{Cmd: "a"}}},
		{"second", conversation{prompt: "go", toolOutputs: 1}, sc, Step{Exec: &Exec{Cmd: "b"}}},
		{"final", conversation{prompt: "go", toolOutputs: 2}, sc, Step{Answer: text("all done")}},
		{"directive wins", conversation{prompt: "[[text: x]]"}, sc, Step{Answer: text("x")}},
		{"behind the directives", conversation{prompt: "[[exec: x]]", toolOutputs: 1, lastOutput: "out"}, sc,
			Step{Answer: text("OK from the scripted model; last tool output: out")}},
		{"no scenario", conversation{prompt: "go"}, nil, Step{Answer: text("OK from the scripted model")}},
		{"long output", conversation{toolOutputs: 1, lastOutput: long}, nil,
			Step{Answer: text("OK from the scripted model; last tool output: " + strings.Repeat("é", 1500))}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.c.step(tt.sc)
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
		})
	}
	_, err := conversation{prompt: "[[slow: x]]"}.step(sc)
	require.ErrorContains(t, err, "[[slow]]")
}

func FuzzResponsesRequest(f *testing.F) {
	f.Add([]byte(request(codeModeTools, "[[exec: ls]]", "out")))
	f.Add([]byte(request(classicTools, "hi")))
	f.Add([]byte(`{"stream":true,"input":"[[patch: x]]","tools":[{"type":"custom","name":"exec"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		req, err := parseResponsesRequest(body)
		if err != nil {
			require.Nil(t, req)
			return
		}
		step, err := req.conversation().step(nil)
		if err != nil {
			return
		}
		require.NoError(t, step.validate())
		turn := &responsesTurn{n: len(req.items)}
		if turn.prepare(req.tools, step) == nil && turn.call != nil {
			encoded, err := encodeJSON(turn.call)
			require.NoError(t, err)
			require.NotContains(t, string(encoded), "\n", "an event's data is one line")
		}
	})
}
