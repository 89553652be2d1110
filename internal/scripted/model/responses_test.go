package model

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const patchText = `*** Begin Patch\n*** Add File: p.txt\n+one\n*** End Patch`

// TestTranscripts compares whole responses, byte for byte, with golden files.
func TestTranscripts(t *testing.T) {
	tests := []struct {
		name, body string
		sleeps     []string
	}{
		{name: "answer", body: request(classicTools, "[[text: done é <&>]]")},
		{name: "standard-final", body: request(classicTools, "hi")},
		{name: "standard-final-output", body: request(classicTools, "[[exec: ls]]", "a.txt")},
		{name: "exec-code-mode", body: request(codeModeTools, `[[exec: echo "hi" > f]]`)},
		{name: "exec-exec-command", body: request(classicTools, `[[exec: echo "hi" > f]]`)},
		{name: "exec-shell-command", body: request(shellCommand, "[[exec: echo hi]]")},
		{name: "exec-shell", body: request(shellFunction, "[[exec: echo hi]]")},
		{name: "exec-second", body: request(classicTools, "[[exec: one]] [[exec: two]]", "1")},
		{name: "execlong-code-mode", body: request(codeModeTools, "[[execlong: sleep 5]]")},
		{name: "execlong-exec-command", body: request(classicTools, "[[execlong: sleep 5]]")},
		{name: "escalate-code-mode", body: request(codeModeTools, "[[escalate: id]]")},
		{name: "escalate-exec-command", body: request(classicTools, "[[escalate: id]]")},
		{name: "escalate-shell-command", body: request(shellCommand, "[[escalate: id]]")},
		{name: "escalate-shell", body: request(shellFunction, "[[escalate: id]]")},
		{name: "patch-code-mode", body: request(codeModeTools, "[[patch: "+patchText+"]]")},
		{name: "patch-custom", body: request(patchTools, "[[patch: "+patchText+"]]")},
		{name: "patch-function", body: request(shellFunction, "[[patch: "+patchText+"]]")},
		{name: "patch-by-shell", body: request(classicTools, "[[patch: "+patchText+"]]")},
		{name: "slow", body: request(classicTools, "[[slow: 2]]"), sleeps: []string{"1s", "1s"}},
		{name: "stall", body: request(classicTools, "[[hang: 7]]"), sleeps: []string{"7s"}},
		{name: "cut", body: request(classicTools, "[[incomplete]]")},
		{name: "megabyte", body: request(classicTools, "[[megabyte: 100 multibyte]]")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := startFixture(t, Options{})
			resp := f.post(t, "/v1/responses", tt.body)
			require.Equal(t, http.StatusOK, resp.status, resp.body)
			assert.Equal(t, "text/event-stream", resp.header.Get("Content-Type"))
			golden(t, tt.name+".sse", resp.body)
			assert.Equal(t, tt.sleeps, f.slept())
		})
	}
}

// TestScenarioTurn plays a whole turn as a CLI does: it answers each call.
func TestScenarioTurn(t *testing.T) {
	sc, err := LoadScenario("edit")
	require.NoError(t, err)
	for name, tools := range map[string]string{"code mode": codeModeTools, "classic": classicTools} {
		t.Run(name, func(t *testing.T) {
			f := startFixture(t, Options{Scenario: sc})
			ids := map[string]bool{}
			for i, outputs := range [][]string{nil, {"a"}, {"a", "b"}} {
				items := finalItems(t, f.post(t, "/v1/responses", request(tools, "go", outputs...)).body)
				call := items[len(items)-1]
				assert.Contains(t, []string{"function_call", "custom_tool_call"}, call.Type)
				assert.False(t, ids[call.CallID], "a thread never sees a call id twice")
				ids[call.CallID] = true
				assert.Equal(t, i < 2, items[0].Phase == "commentary", "steps 0 and 1 have commentary")
			}
			item := lastItem(t, f.post(t, "/v1/responses", request(tools, "go", "a", "b", "c")).body)
			assert.Equal(t, "Added notes.md and read it back.", item.Content[0].Text)
		})
	}
}

func TestCommentaryTranscript(t *testing.T) {
	sc := &Scenario{Steps: []Step{{Exec: &Exec{Cmd: "ls"}, Commentary: "I look."}}}
	f := startFixture(t, Options{Scenario: sc})
	golden(t, "commentary.sse", f.post(t, "/v1/responses", request(classicTools, "go")).body)
}

func TestStatus(t *testing.T) {
	sc := &Scenario{Steps: []Step{{Status: &Status{Code: 429, Body: json.RawMessage(`{"error":{"message":"slow down"}}`)}}}}
	f := startFixture(t, Options{Scenario: sc})
	resp := f.post(t, "/v1/responses", request(classicTools, "hi"))
	assert.Equal(t, 429, resp.status)
	assert.Equal(t, `{"error":{"message":"slow down"}}`, resp.body)

	resp = f.post(t, "/v1/responses", request(classicTools, "[[status: 401]]"))
	assert.Equal(t, 401, resp.status)
	assert.JSONEq(t, `{"error":{"message":"scripted error 401","type":"invalid_request_error","code":null}}`, resp.body)
	assert.Equal(t, int64(2), f.Stats().Refused)
}

// TestUnplayable checks that a script that cannot be played says why.
func TestUnplayable(t *testing.T) {
	f := startFixture(t, Options{})
	for prompt, want := range map[string]string{
		"[[exec: ls]]":                 "declares none of the tools",
		"[[patch: x]]":                 "declares none of the tools",
		"[[slow: private]]":            "directive [[slow]]",
		"[[text: a]] [[megabyte: -1]]": "directive [[megabyte]]",
	} {
		resp := f.post(t, "/v1/responses", request(`[{"type":"web_search"}]`, prompt))
		assert.Equal(t, http.StatusBadRequest, resp.status, prompt)
		assert.Contains(t, resp.body, want)
		assert.NotContains(t, resp.body, "private")
	}
}

func TestMegabyteAnswerIsComplete(t *testing.T) {
	f := startFixture(t, Options{})
	body := f.post(t, "/v1/responses", request(classicTools, "[[megabyte: 1048576 multibyte]]")).body
	got := lastItem(t, body).Content[0].Text
	require.Len(t, got, 1<<20)
	assert.Equal(t, Megabyte{Bytes: 1 << 20, Multibyte: true}.Text(), got)
}

func TestPatchCommandDelimiter(t *testing.T) {
	assert.Equal(t, "apply_patch <<'EOF'\na\nEOF\n", patchCommand("a\n"))
	assert.Equal(t, "apply_patch <<'EOF__'\nEOF\nEOF_\nEOF__\n", patchCommand("EOF\nEOF_"))
}

// lastItem is the last item of the terminal event.
func lastItem(t *testing.T, stream string) outputItem {
	t.Helper()
	items := finalItems(t, stream)
	return items[len(items)-1]
}

func finalItems(t *testing.T, stream string) []outputItem {
	t.Helper()
	_, data, ok := strings.Cut(stream, "event: response.completed\ndata: ")
	require.True(t, ok, "no terminal event in %.300s", stream)
	var event struct {
		Response struct {
			Output []outputItem `json:"output"`
		} `json:"response"`
	}
	require.NoError(t, json.Unmarshal([]byte(data), &event))
	require.NotEmpty(t, event.Response.Output)
	return event.Response.Output
}
