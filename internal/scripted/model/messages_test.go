package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// claudeTools are some of those that Claude Code 2.1.197 declares.
const claudeTools = `[{"name":"Bash"},{"name":"Glob"},{"name":"Grep"},{"name":"Read"}]`

// messages builds a body as Claude Code sends it: reminders beside the prompt,
// and each result of a tool in a message of its own.
func messages(tools, prompt string, outputs ...string) string {
	quoted, _ := json.Marshal(prompt)
	list := []string{`{"role":"user","content":[{"type":"text","text":"<system-reminder>\nbe good\n</system-reminder>\n"},{"type":"text","text":` + string(quoted) + `}]}`}
	for i, out := range outputs {
		quoted, _ = json.Marshal(out)
		list = append(list, fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_%d","name":"Bash","input":{}}]}`, i),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":[{"type":"text","text":%s}]},{"type":"text","text":"<system-reminder>x</system-reminder>"}]}`, i, quoted))
	}
	return fmt.Sprintf(`{"model":"claude-opus-4-8","stream":true,"system":[],"tools":%s,"messages":[%s]}`, tools, strings.Join(list, ","))
}

func TestMessagesTranscripts(t *testing.T) {
	tests := []struct {
		name, body string
		sleeps     []string
	}{
		{name: "answer", body: messages(claudeTools, "[[text: done é <&>]]")},
		{name: "standard-final-output", body: messages(claudeTools, "[[exec: ls]]", "a.txt")},
		{name: "exec", body: messages(claudeTools, `[[exec: echo "hi" > f]]`)},
		{name: "execlong", body: messages(claudeTools, "[[execlong: sleep 5]]")},
		{name: "read", body: messages(claudeTools, "[[exec: one]] [[read: /w/a]]", "1")},
		{name: "write-undeclared", body: messages(claudeTools, "[[write: /w/a|text]]")},
		{name: "glob", body: messages(claudeTools, "[[glob: **/*.go]]")},
		{name: "grep", body: messages(claudeTools, "[[grep: func]]")},
		{name: "tool", body: messages(claudeTools, `[[tool: Task {"prompt":"x"}]]`)},
		{name: "slow", body: messages(claudeTools, "[[slow: 2]]"), sleeps: []string{"1s", "1s"}},
		{name: "stall", body: messages(claudeTools, "[[hang: 7]]"), sleeps: []string{"7s"}},
		{name: "cut", body: messages(claudeTools, "[[incomplete]]")},
		{name: "megabyte", body: messages(claudeTools, "[[megabyte: 100 multibyte]]")},
		{name: "side-request", body: messages("[]", "[[exec: ls]]")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := startFixture(t, Options{})
			resp := f.post(t, "/v1/messages?beta=true", tt.body)
			require.Equal(t, http.StatusOK, resp.status, resp.body)
			assert.Equal(t, "text/event-stream", resp.header.Get("Content-Type"))
			golden(t, "messages-"+tt.name+".sse", resp.body)
			assert.Equal(t, tt.sleeps, f.slept())
		})
	}
}

func TestMessagesCommentary(t *testing.T) {
	sc := &Scenario{Steps: []Step{{Exec: &Exec{Cmd: "ls"}, Commentary: "I look."}}}
	f := startFixture(t, Options{Scenario: sc})
	golden(t, "messages-commentary.sse", f.post(t, "/v1/messages", messages(claudeTools, "go")).body)
}

func TestMessagesConversation(t *testing.T) {
	text := func(s string) string { return fmt.Sprintf(`{"role":"user","content":%q}`, s) }
	result := func(id, s string) string {
		return fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%q}]}`, id, s)
	}
	for name, tt := range map[string]struct {
		messages []string
		want     conversation
	}{
		"a string as content":       {[]string{text("hi")}, conversation{prompt: "hi"}},
		"two results":               {[]string{text("hi"), result("a", "1"), result("b", "2")}, conversation{prompt: "hi", toolOutputs: 2, lastOutput: "2"}},
		"a call answered twice":     {[]string{text("hi"), result("a", "1"), result("a", "2")}, conversation{prompt: "hi", toolOutputs: 1, lastOutput: "2"}},
		"the next turn":             {[]string{text("one"), result("a", "1"), text("two")}, conversation{prompt: "two"}},
		"the CLI's words":           {[]string{text("one"), result("a", "1"), text("<system-reminder>x</system-reminder>")}, conversation{prompt: "one", toolOutputs: 1, lastOutput: "1"}},
		"an answer is no prompt":    {[]string{text("one"), `{"role":"assistant","content":"[[exec: x]]"}`}, conversation{prompt: "one"}},
		"images are no text":        {[]string{`{"role":"user","content":[{"type":"image"},{"type":"text","text":"hi"}]}`}, conversation{prompt: "hi"}},
		"nothing":                   {nil, conversation{}},
		"several texts are joined":  {[]string{`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`}, conversation{prompt: "a\nb"}},
		"a result with words of it": {[]string{text("hi"), `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"text","text":"go on"}]}`}, conversation{prompt: "hi", toolOutputs: 1, lastOutput: "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := parseMessagesRequest([]byte(`{"stream":true,"messages":[` + strings.Join(tt.messages, ",") + `]}`))
			require.NoError(t, err)
			assert.Equal(t, tt.want, req.conversation())
		})
	}
}

func TestMessagesErrors(t *testing.T) {
	f := startFixture(t, Options{Key: "right"})
	for name, tt := range map[string]struct {
		path, body, key string
		status          int
		want            string
	}{
		"no key":       {"/v1/messages", messages(claudeTools, "hi"), "", 401, `"authentication_error"`},
		"wrong key":    {"/v1/messages", messages(claudeTools, "hi"), "wrong", 401, `"invalid x-api-key"`},
		"key":          {"/v1/messages", messages(claudeTools, "hi"), "right", 200, "message_stop"},
		"count":        {"/v1/messages/count_tokens", `{"messages":[]}`, "right", 200, `{"input_tokens":3}`},
		"rate limit":   {"/v1/messages", messages(claudeTools, "[[status: 429]]"), "right", 429, `"rate_limit_error"`},
		"overloaded":   {"/v1/messages", messages(claudeTools, "[[status: 529]]"), "right", 529, `"overloaded_error"`},
		"a plain 500":  {"/v1/messages", messages(claudeTools, "[[status: 500]]"), "right", 500, `"api_error"`},
		"not json":     {"/v1/messages", "hi", "right", 400, "not a Messages API request"},
		"no stream":    {"/v1/messages", `{"messages":[]}`, "right", 400, "only streaming"},
		"bad content":  {"/v1/messages", `{"stream":true,"messages":[{"role":"user","content":7}]}`, "right", 400, "messages[0]"},
		"no such tool": {"/v1/messages", messages(`[{"name":"Read"}]`, "[[exec: ls]]"), "right", 400, "declares no tool Bash"},
		"a patch":      {"/v1/messages", messages(claudeTools, "[[patch: x]]"), "right", 400, "no apply_patch"},
		"bad input":    {"/v1/messages", messages(claudeTools, "[[tool: Task private]]"), "right", 400, "directive [[tool]]"},
	} {
		t.Run(name, func(t *testing.T) {
			resp := f.post(t, tt.path, tt.body, "X-Api-Key", tt.key)
			assert.Equal(t, tt.status, resp.status)
			assert.Contains(t, resp.body, tt.want)
			assert.NotContains(t, resp.body, "private")
		})
	}
	assert.Zero(t, f.Stats().Open)
}

// TestToolStepInResponses: the other API takes the step as well.
func TestToolStepInResponses(t *testing.T) {
	f := startFixture(t, Options{})
	item := lastItem(t, f.post(t, "/v1/responses", request(classicTools, `[[tool: write_stdin {"chars":"x"}]]`)).body)
	assert.Equal(t, "write_stdin", item.Name)
	assert.JSONEq(t, `{"chars":"x"}`, item.Arguments)
	resp := f.post(t, "/v1/responses", request(classicTools, "[[read: x]]"))
	assert.Equal(t, http.StatusBadRequest, resp.status)
	assert.Contains(t, resp.body, "declares no function Read")

	// Code mode has tools of servers, which the request does not list, in its script.
	item = lastItem(t, f.post(t, "/v1/responses", request(codeModeTools, `[[tool: mcp__a_b__c {"x":1}]]`)).body)
	assert.Equal(t, "exec", item.Name)
	assert.Contains(t, item.Input, `const r = await tools.mcp__a_b__c({"x":1});`)
	resp = f.post(t, "/v1/responses", request(codeModeTools, `[[tool: a;b {"x":1}]]`))
	assert.Equal(t, http.StatusBadRequest, resp.status)
}

func FuzzMessagesRequest(f *testing.F) {
	f.Add([]byte(messages(claudeTools, "[[exec: ls]]", "a")))
	f.Add([]byte(`{"stream":true,"messages":[{"role":"user","content":"x"}]}`))
	f.Add([]byte(`{"stream":true,"messages":[{"role":"user","content":null}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		req, err := parseMessagesRequest(body)
		if err != nil {
			return
		}
		c := req.conversation()
		require.LessOrEqual(t, c.toolOutputs, len(body))
		if step, err := c.step(nil); err == nil {
			_, _ = req.use(step)
		}
	})
}
