package job

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// newTable returns a table whose clock is the bubble's.
func newTable(c Contract, change func(*Config)) *testTable {
	cfg := Config{Contract: c, StatusInterval: 1500 * time.Millisecond, DefaultWait: 10 * time.Second, Log: slog.New(slog.DiscardHandler)}
	c0 := &clock{}
	cfg.After = c0.after
	if change != nil {
		change(&cfg)
	}
	return &testTable{NewTable(cfg), c0}
}

// testTable is a table with a clock that runs in the test's goroutine.
type testTable struct {
	*Table
	clock *clock
}

type clock struct{ timers []*timer }

type timer struct {
	at   time.Time
	call func()
}

func (c *clock) after(d time.Duration, call func()) func() {
	t := &timer{time.Now().Add(d), call}
	c.timers = append(c.timers, t)
	return func() { c.timers = slices.DeleteFunc(c.timers, func(o *timer) bool { return o == t }) }
}

// sleep lets time pass and calls what is due on the way.
func (t *testTable) sleep(d time.Duration) {
	end := time.Now().Add(d)
	for {
		slices.SortStableFunc(t.clock.timers, func(a, b *timer) int { return a.at.Compare(b.at) })
		if len(t.clock.timers) == 0 || t.clock.timers[0].at.After(end) {
			time.Sleep(time.Until(end))
			return
		}
		next := t.clock.timers[0]
		t.clock.timers = t.clock.timers[1:]
		time.Sleep(time.Until(next.at))
		next.call()
	}
}

// both runs a test with each contract.
func both(t *testing.T, name string, change func(*Config), test func(t *testing.T, c Contract, table *testTable)) {
	t.Helper()
	for _, c := range []Contract{Codex, Claude} {
		t.Run(name+" of "+c.Label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, c, newTable(c, change)) })
		})
	}
}

// structured returns the structuredContent of an answer as it is written.
func structured(a Answer) string { return string(a.Structured) }

// now asks without waiting.
func now(t *testTable, j *Job) Answer {
	var got Answer
	t.Status(j.ID, 0, 0, func(a Answer) { got = a })
	return got
}

// TestAnswersOfBothContracts holds each answer of each contract, as it is
// written, with the id replaced by ID.
func TestAnswersOfBothContracts(t *testing.T) {
	want := map[string][]string{
		"Codex": {
			`started {"jobId":"ID","state":"starting","cursor":0,"message":"Codex: starting","commentaryStartOffset":0,"commentaryEndOffset":0,"next":{"tool":"codex-status","arguments":{"cursor":0,"jobId":"ID"}}}`,
			`running {"jobId":"ID","state":"running","cursor":1,"message":"Codex: running","elapsedSeconds":2,"lastActivitySeconds":0,"threadId":"T","resultAvailable":false,"resultTruncated":false,"commentaryStartOffset":0,"commentaryEndOffset":0,"commentaryTruncated":false}`,
			`pending {"jobId":"ID","state":"running","resultAvailable":false,"next":{"tool":"codex-status","arguments":{"cursor":1,"jobId":"ID"}}}`,
			`ahead ERROR {"code":"status_cursor_ahead","jobId":"ID","cursor":1}`,
			`completed {"jobId":"ID","state":"completed","cursor":2,"message":"Codex: completed","elapsedSeconds":2,"lastActivitySeconds":0,"threadId":"T","resultAvailable":true,"resultTruncated":false,"commentaryStartOffset":0,"commentaryEndOffset":0,"commentaryTruncated":false}`,
			`page {"jobId":"ID","state":"completed","threadId":"T","offset":1,"nextOffset":3,"endOffset":3,"done":true,"resultTruncated":false,"text":"é<"}`,
			`range ERROR {"code":"result_offset_out_of_range","jobId":"ID","offset":4}`,
			`failed {"jobId":"ID","state":"failed","cursor":1,"message":"Codex: broke","elapsedSeconds":0,"lastActivitySeconds":0,"code":"why","resultAvailable":false,"resultTruncated":false,"commentaryStartOffset":0,"commentaryEndOffset":0,"commentaryTruncated":false}`,
			`none ERROR {"jobId":"ID","state":"failed","code":"why","resultAvailable":false}`,
			`unknown ERROR {"code":"job_not_found","jobId":"x"}`,
			`capacity ERROR {"code":"capacity_exceeded","activeJobs":1,"retainedJobs":2,"maxActiveJobs":8,"maxRetainedJobs":2}`,
		},
		"Claude": {
			`started {"jobId":"ID","state":"starting","cursor":0,"message":"Claude: starting","resultAvailable":false,"next":{"tool":"claude-status","arguments":{"cursor":0,"jobId":"ID"}}}`,
			`running {"jobId":"ID","state":"running","cursor":1,"message":"Claude: running","elapsedSeconds":2,"lastActivitySeconds":0,"resultAvailable":false,"resultTruncated":false,"next":{"tool":"claude-status","arguments":{"cursor":1,"jobId":"ID"}}}`,
			`pending {"jobId":"ID","state":"running","resultAvailable":false,"next":{"tool":"claude-status","arguments":{"cursor":1,"jobId":"ID"}}}`,
			`ahead ERROR {"code":"status_cursor_ahead","jobId":"ID","cursor":1}`,
			`completed {"jobId":"ID","state":"completed","cursor":2,"message":"Claude: completed","elapsedSeconds":2,"lastActivitySeconds":0,"resultAvailable":true,"resultTruncated":false,"next":{"tool":"claude-result","arguments":{"jobId":"ID","offset":0}}}`,
			`page {"jobId":"ID","state":"completed","offset":1,"nextOffset":3,"endOffset":3,"done":true,"resultTruncated":false,"text":"é<"}`,
			`range ERROR {"code":"result_offset_out_of_range","jobId":"ID","offset":4,"endOffset":3}`,
			`failed {"jobId":"ID","state":"failed","cursor":1,"message":"Claude: broke","elapsedSeconds":0,"lastActivitySeconds":0,"resultAvailable":false,"resultTruncated":false}`,
			`none ERROR {"jobId":"ID","state":"failed","resultAvailable":false}`,
			`unknown ERROR {"code":"job_not_found","jobId":"x"}`,
			`capacity ERROR {"code":"job_capacity_full","activeJobs":1,"retainedJobs":2,"maxActiveJobs":8,"maxRetainedJobs":2}`,
		},
	}
	both(t, "answers", func(c *Config) { c.MaxRetained = 2 }, func(t *testing.T, c Contract, table *testTable) {
		var got []string
		note := func(name string, j *Job, a Answer) {
			if a.IsError {
				name += " ERROR"
			}
			text := structured(a)
			if j != nil {
				text = strings.ReplaceAll(text, j.ID, "ID")
			}
			got = append(got, name+" "+text)
		}
		j, _ := table.Start()
		note("started", j, table.Started(j))
		table.sleep(2 * time.Second)
		j.Thread = "T"
		j.Active()
		note("running", j, now(table, j))
		note("pending", j, table.Result(j.ID, 0))
		table.Status(j.ID, 7, 0, func(a Answer) { note("ahead", j, a) })
		j.Complete("aé<")
		note("completed", j, now(table, j))
		note("page", j, table.Result(j.ID, 1))
		note("range", j, table.Result(j.ID, 4))
		bad, _ := table.Start()
		bad.Fail("broke", "why")
		note("failed", bad, now(table, bad))
		note("none", bad, table.Result(bad.ID, 0))
		note("unknown", nil, table.Result("x", 0))
		fresh := newTable(c, func(c *Config) { c.MaxRetained = 2 })
		one, _ := fresh.Start()
		one.Complete("unread")
		fresh.Start()
		_, refused := fresh.Start()
		note("capacity", nil, refused)
		assert.Equal(t, want[c.Label], got)
	})
}

func TestStatusWaits(t *testing.T) {
	both(t, "a wait", nil, func(t *testing.T, c Contract, table *testTable) {
		j, _ := table.Start()
		var got []Answer
		ask := func(cursor int, wait time.Duration) func() {
			return table.Status(j.ID, cursor, wait, func(a Answer) { got = append(got, a) })
		}
		ask(0, time.Second)
		table.sleep(999 * time.Millisecond)
		assert.Empty(t, got)
		table.sleep(time.Millisecond)
		require.Len(t, got, 1)
		assert.Equal(t, c.Label+": still running; last activity 1s ago", got[0].Message)
		assert.Equal(t, 0, j.cursor, "a heartbeat is no change")
		ask(0, time.Minute)
		forget := ask(0, time.Minute)
		forget()
		j.Active()
		require.Len(t, got, 2, "the change answers the one that still waits")
		ask(0, time.Minute)
		require.Len(t, got, 3, "a change that was missed answers at once")
		ask(1, 0)
		require.Len(t, got, 4, "0 does not wait")
		j.Complete("x")
		ask(2, time.Minute)
		require.Len(t, got, 5, "the end does not wait")
		assert.Empty(t, j.waiters)
	})
	both(t, "longer than allowed", nil, func(t *testing.T, _ Contract, table *testTable) {
		j, _ := table.Start()
		start := time.Now()
		table.Status(j.ID, 0, time.Hour, func(Answer) { assert.Equal(t, MaxWait, time.Since(start)) })
		table.sleep(2 * time.Minute)
	})
}

func TestMessages(t *testing.T) {
	both(t, "texts are throttled", nil, func(t *testing.T, c Contract, table *testTable) {
		j, _ := table.Start()
		j.Progress("one")
		assert.Equal(t, c.Label+": one", j.Message())
		j.Progress("two")
		j.Progress("three\x1b[0m\n x")
		assert.Equal(t, 1, j.cursor)
		table.sleep(1500 * time.Millisecond)
		assert.Equal(t, c.Label+": three [0m x", j.Message())
		assert.Equal(t, 2, j.cursor)
		j.Progress("four")
		j.Cancel()
		assert.Equal(t, 3, j.cursor)
		table.sleep(time.Minute)
		assert.Equal(t, c.Label+": canceling", j.Message(), "nothing follows the cancel")
		j.Progress("five")
		j.Canceled("canceled")
		j.Complete("late")
		j.Fail("late", "")
		assert.Equal(t, Canceled, j.State(), "the first end counts")
		assert.Equal(t, 4, j.cursor)
	})
	both(t, "without an interval", func(c *Config) { c.StatusInterval = 0 }, func(t *testing.T, _ Contract, table *testTable) {
		j, _ := table.Start()
		j.Progress("one")
		j.Progress("two")
		j.Progress("two")
		assert.Equal(t, 2, j.cursor, "a repetition is no change")
	})
	both(t, "activity", nil, func(t *testing.T, c Contract, table *testTable) {
		j, _ := table.Start()
		table.sleep(5 * time.Second)
		j.Cancel()
		want := map[string]int{"Codex": 5, "Claude": 0}[c.Label]
		assert.Contains(t, structured(now(table, j)), fmt.Sprintf(`"lastActivitySeconds":%d,`, want))
	})
}

func TestCancel(t *testing.T) {
	both(t, "idempotent", nil, func(t *testing.T, c Contract, table *testTable) {
		j, _ := table.Start()
		calls := 0
		j.OnCancel = func() { calls++ }
		a := table.Cancel(j.ID)
		assert.Contains(t, structured(a), `"state":"canceling","cursor":1,"message":"`+c.Label+`: canceling"`)
		assert.Equal(t, structured(a), structured(table.Cancel(j.ID)))
		assert.Equal(t, 1, calls)
		j.Canceled("canceled")
		assert.Contains(t, structured(table.Cancel(j.ID)), `"state":"canceled","cursor":2`)
	})
}

func TestRetention(t *testing.T) {
	both(t, "jobs expire after their end", nil, func(t *testing.T, _ Contract, table *testTable) {
		j, _ := table.Start()
		table.sleep(10 * time.Hour)
		assert.False(t, now(table, j).IsError, "one that runs does not")
		j.Complete("x")
		table.sleep(Retention - 1)
		assert.False(t, now(table, j).IsError)
		table.sleep(1)
		assert.Contains(t, structured(now(table, j)), "job_not_found")
	})
	both(t, "70 what was read makes room", func(c *Config) { c.MaxRetained = 2 }, func(t *testing.T, _ Contract, table *testTable) {
		first, _ := table.Start()
		second, _ := table.Start()
		second.Complete("two")
		table.sleep(time.Second)
		first.Complete("one")
		none, _ := table.Start()
		assert.Nil(t, none, "unread results stay")
		now(table, first)
		none, _ = table.Start()
		assert.Nil(t, none, "a status is not the result")
		table.Result(first.ID, 0)
		third, _ := table.Start()
		require.NotNil(t, third)
		assert.True(t, now(table, first).IsError)
		assert.False(t, now(table, second).IsError)
		third.Fail("x", "")
		now(table, third)
		fourth, _ := table.Start()
		require.NotNil(t, fourth, "a failed one is read with its status")
	})
	both(t, "69 active ones are bounded", func(c *Config) { c.MaxActive = 2 }, func(t *testing.T, _ Contract, table *testTable) {
		j, _ := table.Start()
		table.Start()
		none, refused := table.Start()
		assert.Nil(t, none)
		assert.True(t, refused.IsError)
		j.Fail("x", "")
		again, _ := table.Start()
		assert.NotNil(t, again)
		assert.Len(t, table.Active(), 2)
	})
}

func TestWording(t *testing.T) {
	for raw, want := range map[string][2]string{ // of Codex and of Claude
		"0": {}, "60000": {}, "6e4": {}, "5.0": {},
		"60001": {"must be an integer from 0 to 60000", "must be at most 60000"},
		"-1":    {"must be an integer from 0 to 60000", "must be a non-negative integer"},
		"1.5":   {"must be an integer from 0 to 60000", "must be a non-negative integer"},
		`"1"`:   {"must be an integer from 0 to 60000", "must be a non-negative integer"},
		"null":  {"must be an integer from 0 to 60000", "must be a non-negative integer"},
	} {
		for i, c := range []Contract{Codex, Claude} {
			_, problem := c.Wording.WaitTime(json.RawMessage(raw))
			assert.Equal(t, want[i], problem, "%s %s", c.Label, raw)
		}
	}
	for _, raw := range []string{"-1", "1.5", `"1"`, "true", "[]", "{}", "Inf", "NaN", "0x1p3", "1_0", ""} {
		_, problem := Codex.Wording.Number(json.RawMessage(raw))
		assert.Equal(t, "must be a nonnegative integer", problem, raw)
		_, problem = Claude.Wording.Number(json.RawMessage(raw))
		assert.Equal(t, "must be a non-negative integer", problem, raw)
	}
	n, problem := Codex.Wording.Number(json.RawMessage("1e300"))
	assert.Empty(t, problem)
	assert.Equal(t, 1<<53, n)
}

// TestPagesHoldEveryCodePointOnce reads texts in pages of any size, forwards and
// from anywhere.
func TestPagesHoldEveryCodePointOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		size := rapid.IntRange(1, 7).Draw(t, "size")
		p := newPaged(text)
		var all strings.Builder
		for offset := 0; offset < p.end; {
			page, next := p.page(offset, size)
			require.Equal(t, next-offset, utf8.RuneCountInString(page))
			all.WriteString(page)
			offset = next
		}
		require.Equal(t, text, all.String())
		from := rapid.IntRange(0, p.end).Draw(t, "from")
		page, _ := p.page(from, p.end)
		require.Equal(t, string([]rune(text)[from:]), page)
	})
}

// TestTailKeepsTheEnd writes pieces and compares with all that was written.
func TestTailKeepsTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(4, 40).Draw(t, "limit")
		tail := tail{limit: limit}
		var all []rune
		drops := 0
		for _, piece := range rapid.SliceOf(rapid.String()).Draw(t, "pieces") {
			if tail.write(piece) {
				drops++
			}
			all = append(all, []rune(strings.Map(printable, piece))...)
			require.LessOrEqual(t, len(tail.text), limit)
			require.Equal(t, len(all), tail.end)
			require.Equal(t, string(all[tail.start:]), string(tail.text))
			require.Greater(t, len(string(all[max(0, tail.start-1):]))+1, min(limit-3, len(string(all))), "no more is dropped than must be")
		}
		require.LessOrEqual(t, drops, 1)
	})
}

func TestMessageIsOneShortLine(t *testing.T) {
	assert.Equal(t, "a b c", Message(" a\n\tb\x00\u0085c ", 200))
	assert.Equal(t, strings.Repeat("é", 200), Message(strings.Repeat("é", 300), 200))
}

func TestAnswerAsResult(t *testing.T) {
	b, err := json.Marshal(Answer{Text: "<a>", Structured: json.RawMessage(`{"x":1}`)})
	require.NoError(t, err)
	assert.JSONEq(t, `{"content":[{"type":"text","text":"<a>"}],"structuredContent":{"x":1}}`, string(b))
	b, _ = json.Marshal(Answer{IsError: true, Structured: json.RawMessage(`{}`)})
	assert.Contains(t, string(b), `"isError":true`)
}
