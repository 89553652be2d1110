package claude

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/mcp/toolserver"
)

// Answers as large as a call may have, at the limit that users have. Each
// character is there once, whether in the answer or in the pages.
func TestHugeAnswer(t *testing.T) {
	f := start(t, nil)
	for char, count := range map[string]int{"a": 10_000_000, "語": 3_300_000} {
		a := f.call("claude_code", map[string]any{"prompt": script(do("result", "text", char, "repeat", count))})
		require.False(t, a.IsError)
		short, note, ok := strings.Cut(a.text(), "\n\n[mcp-agents: ")
		require.True(t, ok)
		require.Equal(t, strings.Repeat(char, DefaultMaxChars), short)
		_, id, _ := strings.Cut(note, "jobId ")
		id, _, _ = strings.Cut(id, " ")
		chars := DefaultMaxChars
		for done := false; !done; {
			page := f.call("claude-result", map[string]any{"jobId": id, "offset": chars}).Structured
			text := page["text"].(string)
			require.Empty(t, strings.Trim(text, char), "nothing else")
			chars += len(text) / len(char)
			require.Equal(t, float64(chars), page["nextOffset"])
			done = page["done"].(bool)
		}
		require.Equal(t, count, chars)
	}
}

// A client that gives a poll up without a word finds its job later, as
// often as it asks.
func TestDroppedPollLosesNothing(t *testing.T) {
	f := start(t, nil)
	id := f.review(script(do("event", "type", "assistant"), do("pause", "ms", 300), do("result", "text", "verdict")))
	f.begin("claude-status", map[string]any{"jobId": id, "cursor": 0, "wait_ms": 60000}) // nobody waits for it
	f.over(id)
	for range 3 {
		assert.Equal(t, "verdict", f.call("claude-result", map[string]any{"jobId": id}).text())
	}
	other := start(t, nil) // jobs belong to their connection: another one does not know them, and says so
	assert.Equal(t, "job_not_found", other.call("claude-result", map[string]any{"jobId": id}).Structured["code"])
}

// A poll that names no time is answered long before clients give up.
func TestDefaultWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Config{})
		defer p.Close(context.Background())
		j, _ := p.jobs.table.Start() // of a review that never says anything
		args, err := json.Marshal(map[string]any{"jobId": j.ID, "cursor": 0})
		require.NoError(t, err)
		began := time.Now()
		r, err := p.Tools()[3].Call(t.Context(), toolserver.Call{Arguments: args})
		require.NoError(t, err)
		assert.False(t, r.IsError)
		assert.Equal(t, 10*time.Second, time.Since(began))
		p.jobs.locked(func() { j.Fail("over", "") })
	})
}

// What is said on stderr, before the first word and without a line's end,
// holds nothing up.
func TestChattyStderr(t *testing.T) {
	f := start(t, nil)
	noisy := script(do("stderr-bytes", "repeat", 9<<20), do("result", "text", "ok"))
	assert.Equal(t, "ok", f.call("claude_code", map[string]any{"prompt": noisy}).text())
	noisy = script(do("stderr-bytes", "repeat", 100<<20), do("result", "text", "ok"))
	assert.Equal(t, "completed", f.over(f.review(noisy)).state())
}

// A CLI that waits for the end of its input gets it. The fake reads to the
// end before it acts, as the real one does.
func TestInputEnds(t *testing.T) {
	f := start(t, nil)
	began := time.Now()
	assert.Equal(t, "hello", f.call("claude_code", map[string]any{"prompt": "hello"}).text())
	assert.Equal(t, "completed", f.over(f.review(script(do("result", "text", "ok"), do("until-end")))).state())
	assert.Less(t, time.Since(began), 2*time.Second+raceSlack)
}

// raceSlack is what a loaded machine may add where a bound is asserted.
const raceSlack = 8 * time.Second

// A review whose CLI never begins, because it waits for something
// that it does not get, fails long before its deadline, and says so. Words that
// are no event are no beginning.
func TestNoFirstEvent(t *testing.T) {
	f := start(t, func(c *Config) { c.FirstEvent = 1500 * time.Millisecond })
	for name, steps := range map[string][]map[string]any{
		"silence":          {do("ignore-term"), do("linger"), do("stall")},
		"a login's prompt": {do("stdout", "text", "Visit https://example.invalid/login\n"), do("stderr", "text", "waiting"), do("stall")},
		"half an event":    {do("stdout", "text", `{"type":"system"`), do("stall")},
	} {
		t.Run(name, func(t *testing.T) {
			end := f.over(f.review(script(steps...)))
			assert.Equal(t, "failed", end.state())
			assert.Equal(t, "Claude: gave no first event within 1500ms: it may wait for a login or for an input", end.Structured["message"])
			assert.Empty(t, f.processes())
		})
	}
	// One that has begun may be silent for as long as it likes.
	assert.Equal(t, "completed", f.over(f.review(script(do("event", "type", "system", "subtype", "init"), do("pause", "ms", 2000), do("result", "text", "ok")))).state())
}

// A cancel before the first event is a cancel.
func TestCancelBeforeFirstEvent(t *testing.T) {
	f := start(t, nil)
	id := f.review(script(do("ignore-term"), do("stall")))
	f.call("claude-cancel", map[string]any{"jobId": id})
	assert.Equal(t, "canceled", f.over(id).state())
}

// Of a review its result event decides alone. How the CLI exits and what
// it says beside never does.
func TestReviewFailureShapes(t *testing.T) {
	f := start(t, nil)
	exits := map[string]map[string]any{"exit 0": do("exit"), "exit 1": do("exit", "code", 1), "exit 137": do("exit", "code", 137), "killed": do("signal", "code", 9)}
	const limits = "rate limit: error 429, please run /login"
	const noResult = "provider exited without a result"
	for exit, last := range exits {
		for name, tt := range map[string]struct {
			steps   []map[string]any
			message string // empty: completed with text
			text    string
			runs    int
		}{
			"a result":                {[]map[string]any{do("result", "text", "fine")}, "", "fine", 1},
			"a result about errors":   {[]map[string]any{do("result", "text", limits)}, "", limits, 1},
			"a result of errors":      {[]map[string]any{do("result", "text", limits, "is_error", true)}, "provider returned an error", "", 1},
			"a blank error":           {[]map[string]any{do("result", "is_error", true)}, "provider returned an error", "", 1},
			"a blank result":          {[]map[string]any{do("result", "text", " \n")}, "returned an empty result twice", "", 2},
			"no result":               {[]map[string]any{do("event", "type", "assistant", "text", "fine")}, noResult, "", 1},
			"no result, about errors": {[]map[string]any{do("event", "type", "assistant", "text", limits)}, noResult, "", 1},
			"plain text":              {[]map[string]any{do("stdout", "text", limits+"\n")}, noResult, "", 1},
			"only stderr":             {[]map[string]any{do("stderr", "text", limits)}, noResult, "", 1},
			"nothing":                 {nil, noResult, "", 1},
		} {
			t.Run(exit+", "+name, func(t *testing.T) {
				before := len(f.recorded())
				id := f.review(script(append(append([]map[string]any{f.record()}, tt.steps...), last)...))
				end := f.over(id)
				result := f.call("claude-result", map[string]any{"jobId": id})
				assert.Len(t, f.recorded(), before+tt.runs)
				if tt.message == "" {
					assert.Equal(t, "completed", end.state())
					assert.False(t, result.IsError)
					assert.Equal(t, tt.text, result.text())
					return
				}
				assert.Equal(t, "failed", end.state())
				assert.Equal(t, "Claude: "+tt.message, end.Structured["message"])
				assert.True(t, result.IsError)
				assert.Contains(t, result.text(), fmt.Sprintf("Claude job %s failed: Claude: %s", id, tt.message))
				assert.NotContains(t, result.raw, "rate limit", "the provider's words are not told")
			})
		}
	}
}
