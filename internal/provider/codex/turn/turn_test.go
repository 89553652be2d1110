package turn

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

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
	turn := &Turn{}
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
		turn.Note(e)
		record, now := speech.Hear(e)
		assert.Empty(t, record+now, "its one message is the final answer: %s", e.Type)
		if text := Text(e); text != "" {
			told = append(told, text)
		}
		if Ends(e.Type) == Complete {
			assert.Equal(t, "Wrote hello.txt.", e.LastAgentMessage)
		}
	}
	assert.Equal(t, []string{"started", "running a command", "command finished (exit 0)"}, told)
	assert.Contains(t, kinds, "task_complete")
	assert.Empty(t, turn.Commands)
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

func TestThreadsForgetTheLeastUsed(t *testing.T) {
	var threads Threads
	for i := range maxThreads {
		threads.Remember(fmt.Sprint(i), "/"+fmt.Sprint(i), "read-only")
	}
	_, _, ok := threads.Find("0") // used again
	require.True(t, ok)
	threads.Remember("new", "/new", "read-only")
	_, _, ok = threads.Find("1")
	assert.False(t, ok)
	cwd, sandbox, ok := threads.Find("0")
	assert.Equal(t, []any{"/0", "read-only", true}, []any{cwd, sandbox, ok})
	assert.Len(t, threads.places, maxThreads)
}

func TestLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Ledger
		assert.Empty(t, l.Rest())
		a := &Turn{Tool: "codex", Thread: "T", Sandbox: "read-only"}
		assert.Equal(t, "WARNING codex turn abandoned while possibly still running: request 3 (idle timeout (2s)); thread_id=T job_id=none "+
			"sandbox_mode=read-only; codex was NOT confirmed stopped, so it may still write to the workspace", l.Abandon("number:3", "3", "idle timeout (2s)", a))
		l.Abandon("k", `"k"`, "x", &Turn{Tool: "codex-reply", Job: "J"})
		assert.Same(t, a, l.Find("number:3"))
		assert.Equal(t, "2 abandoned codex turn(s) were still unaccounted for at teardown: codex thread_id=T job_id=none; codex-reply thread_id=none job_id=J", l.Rest())
		time.Sleep(7 * time.Second)
		assert.Equal(t, "abandoned codex turn finished after 7s (thread_id=T job_id=none)", l.Settle("number:3"))
		assert.Empty(t, l.Settle("number:3"))
		assert.Nil(t, l.Find("number:3"))
		assert.Equal(t, 1, l.Count())
	})
}

func TestPeekOrder(t *testing.T) {
	now := time.Now()
	p := Look([]*Turn{{Request: "b", Started: now, Active: now}, {Request: "a", Started: now, Active: now}, {Request: "c", Started: now.Add(-time.Minute), Active: now}}, Filter{}, 0)
	assert.Equal(t, []string{"c", "a", "b"}, []string{p.Turns[0].RequestID, p.Turns[1].RequestID, p.Turns[2].RequestID})
	assert.False(t, p.Ambiguous, "only a filter can be ambiguous")
	assert.Equal(t, "/", bare("///"[:1]))
}

// played is what a Progress sent, and when.
type played struct {
	sent []Message
	when []time.Time
	late int // messages after the end
}

// play tells texts, with pauses in milliseconds after each, by a clock that runs
// in the caller's goroutine.
func play(texts []string, pauses []int) (out played) {
	type due struct {
		at   time.Time
		call func()
	}
	var timers []*due
	p := &Progress{Spacing: time.Second, Silence: 10 * time.Second, Age: func() time.Duration { return 0 },
		After: func(d time.Duration, call func()) func() {
			mine := &due{time.Now().Add(d), call}
			timers = append(timers, mine)
			return func() { mine.call = func() {} }
		},
		Send: func(m Message) { out.sent = append(out.sent, m); out.when = append(out.when, time.Now()) }}
	sleep := func(d time.Duration) {
		for end := time.Now().Add(d); ; {
			next := -1
			for i, o := range timers {
				if !o.at.After(end) && (next < 0 || o.at.Before(timers[next].at)) {
					next = i
				}
			}
			if next < 0 {
				time.Sleep(time.Until(end)) // of the bubble's clock
				return
			}
			o := timers[next]
			timers = slices.Delete(timers, next, next+1)
			time.Sleep(time.Until(o.at))
			o.call()
		}
	}
	p.Start(json.RawMessage(`"t"`))
	for i, text := range texts {
		p.Tell(text)
		sleep(time.Duration(pauses[i]) * time.Millisecond)
	}
	p.Stop()
	before := len(out.sent)
	sleep(time.Hour)
	out.late = len(out.sent) - before
	return out
}

// TestProgressProperties plays any events at any times: numbers rise, statuses
// keep their distance, silence is told, nothing comes after the end.
func TestProgressProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		texts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "", "c\x00\n"}), 1, 30).Draw(rt, "texts")
		pauses := rapid.SliceOfN(rapid.IntRange(0, 15000), len(texts), len(texts)).Draw(rt, "pauses")
		var out played
		synctest.Test(t, func(*testing.T) { out = play(texts, pauses) })
		require.Zero(rt, out.late)
		var last time.Time
		for i, m := range out.sent {
			require.Equal(rt, i+1, m.Progress)
			if i > 0 {
				require.LessOrEqual(rt, out.when[i].Sub(out.when[i-1]), 10*time.Second, "silence is told")
			}
			if strings.Contains(m.Message, "still running") {
				continue
			}
			require.True(rt, last.IsZero() || out.when[i].Sub(last) >= time.Second)
			last = out.when[i]
		}
	})
}

func TestValidToken(t *testing.T) {
	for raw, want := range map[string]bool{`"a"`: true, `""`: true, "0": true, "-1.5e3": true, "1e999": false, "null": false, "{}": false, "[]": false, "true": false, "": false, "Inf": false} {
		assert.Equal(t, want, ValidToken(json.RawMessage(raw)), raw)
	}
}

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
		text := job.Message(Label+Text(e)+tell, maxMessage)
		require.LessOrEqual(t, utf8.RuneCountInString(text), maxMessage)
		require.NotContains(t, text, "\n")
		if texts[kind] == nil && !speaks(kind) {
			require.Empty(t, record+tell+Text(e))
		}
		turn := &Turn{}
		turn.Note(e)
		_ = e.Unauthorized()
	})
}
