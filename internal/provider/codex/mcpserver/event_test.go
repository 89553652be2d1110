package mcpserver

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/agent"
	"mcpagents/internal/agent/job"
)

// TestRecordedSession reads what Codex 0.153.4 wrote in a session with one
// command.
func TestRecordedSession(t *testing.T) {
	f, err := os.Open("../../../scripted/model/testdata/codex-0.153.4-session.jsonl")
	require.NoError(t, err)
	defer f.Close()
	var told, kinds []string
	var speech Speech
	turn := &agent.Record{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var m struct {
			Params struct{ Msg json.RawMessage }
		}
		var kind struct{ Type string }
		if json.Unmarshal(lines.Bytes(), &m) != nil || json.Unmarshal(m.Params.Msg, &kind) != nil {
			continue
		}
		e := Parse(kind.Type, m.Params.Msg)
		kinds = append(kinds, e.Type)
		event := e.In(&speech)
		turn.Note(event)
		assert.Empty(t, event.Commentary, "its one message is the final answer: %s", e.Type)
		if event.Status != "" {
			told = append(told, event.Status)
		}
		if event.Kind == agent.Completed {
			assert.Equal(t, "Wrote hello.txt.", event.Answer)
		}
	}
	assert.Equal(t, []string{"started", "running a command", "command finished (exit 0)"}, told)
	assert.Contains(t, kinds, "task_complete")
	assert.Empty(t, turn.Commands)
}

func TestWhatAnEventMeans(t *testing.T) {
	for msg, want := range map[string]agent.Event{
		`{"type":"exec_command_begin","call_id":"c"}`:                 {Kind: agent.CommandStarted, Command: "c", Status: "running a command"},
		`{"type":"exec_command_end","call_id":"c","exit_code":3}`:     {Kind: agent.CommandEnded, Command: "c", Status: "command finished (exit 3)"},
		`{"type":"turn_complete","last_agent_message":"a"}`:           {Kind: agent.Completed, Answer: "a"},
		`{"type":"task_complete"}`:                                    {Kind: agent.Completed},
		`{"type":"turn_aborted"}`:                                     {Kind: agent.Aborted},
		`{"type":"error","codex_error_info":"unauthorized"}`:          {Kind: agent.Unauthorized},
		`{"type":"error","codex_error_info":"other"}`:                 {},
		`{"type":"agent_reasoning","call_id":"c","message":"secret"}`: {},
		`{"type":"agent_message","phase":"commentary","message":"m"}`: {Commentary: "m\n\n", Status: "m"},
	} {
		var kind struct{ Type string }
		require.NoError(t, json.Unmarshal([]byte(msg), &kind))
		want.Name = kind.Type
		assert.Equal(t, want, Parse(kind.Type, []byte(msg)).In(&Speech{}), msg)
	}
}

func TestSpeech(t *testing.T) {
	item := func(kind, id, text string) *Event {
		return &Event{Type: kind, Item: Item{Type: "AgentMessage", ID: id, Phase: "commentary", Content: []Part{{"Text", text}, {"Image", "no"}}}}
	}
	delta := func(id, text string) *Event {
		return &Event{Type: "agent_message_content_delta", ItemID: id, Delta: text}
	}
	whole := func(text string) *Event {
		return &Event{Type: "agent_message", Phase: "commentary", Message: text}
	}
	tests := []struct {
		name         string
		events       []*Event
		record, last string
	}{
		{"streamed, then completed", []*Event{item("item_started", "a", ""), delta("a", "one "), delta("a", "two"), item("item_completed", "a", "one two three")},
			"one two three\n\n", "one two three"},
		{"completed without a delta", []*Event{item("item_completed", "a", "one")}, "one\n\n", "one"},
		{"completed without a text", []*Event{item("item_started", "a", ""), delta("a", "one"), item("item_completed", "a", "")}, "one\n\n", "one"},
		{"completed with another text", []*Event{item("item_started", "a", ""), delta("a", "one"), item("item_completed", "a", "else")}, "one\n\n", "else"},
		{"a message as well", []*Event{item("item_completed", "a", "one"), whole("one")}, "one\n\n", "one"},
		{"only messages", []*Event{whole("one"), whole("two")}, "one\n\ntwo\n\n", "two"},
		{"the message member", []*Event{{Type: "item_completed", Item: Item{Type: "AgentMessage", Phase: "commentary", Message: "m"}}}, "m\n\n", "m"},
		{"nothing", []*Event{item("item_completed", "a", ""), whole("")}, "", ""},
		{"deltas of others", []*Event{delta("a", "x"), item("item_started", "a", ""), delta("b", "x")}, "", ""},
		{"the last 400", []*Event{item("item_started", "a", ""), delta("a", strings.Repeat("é", 500))}, strings.Repeat("é", 500), strings.Repeat("é", 400)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s Speech
			record, last := "", ""
			for _, e := range tt.events {
				r, tell := s.Hear(e)
				record += r
				if tell != "" {
					last = tell
				}
			}
			assert.Equal(t, tt.record, record)
			assert.Equal(t, tt.last, last)
		})
	}
}

// maxMessage is the longest message of progress, in code points.
const maxMessage = 200

// FuzzEvent feeds any event through all that reads events: no panic, bounded
// texts, and nothing of members that are never told.
func FuzzEvent(f *testing.F) {
	for _, kind := range []string{"exec_command_begin", "item_completed", "agent_message", "plan_update", "patch_apply_begin", "error", "task_complete", "mcp_tool_call_begin"} {
		f.Add(kind, `{"message":"m","phase":"commentary","item":{"type":"AgentMessage","phase":"commentary","id":"i","content":[{"type":"Text","text":"t"}]},"plan":[{"step":"s","status":"in_progress"}],"changes":{"a":1},"exit_code":1}`)
	}
	f.Add("agent_message_content_delta", `{"item_id":1,"delta":[],"item":7}`)
	f.Fuzz(func(t *testing.T, kind, msg string) {
		var s Speech
		e := Parse(kind, []byte(msg))
		require.Equal(t, kind, e.Type)
		record, tell := s.Hear(e)
		text := job.Message(Text(e)+tell, maxMessage)
		require.LessOrEqual(t, utf8.RuneCountInString(text), maxMessage)
		require.NotContains(t, text, "\n")
		if texts[kind] == nil && !speaks(kind) {
			require.Empty(t, record+tell+Text(e))
		}
		(&agent.Record{}).Note(e.In(&s))
	})
}
