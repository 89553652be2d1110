package claude

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// testReviewLifecycle: how it is started, what it shows, what it keeps to itself.
func testReviewLifecycle(t *testing.T) {
	f := start(t, nil)
	const private = "words of the reviewer"
	prompt := script(f.record(), do("stdout", "text", "no json\n[1,2]\n\n"), do("event", "type", "system", "subtype", "init"),
		do("pause", "ms", 50), do("stdout", "text", `{"type":"assist`), do("pause", "ms", 50), do("stdout", "text", `ant","text":"`+private+`"}`+"\n"),
		do("pause", "ms", 50), do("event", "type", "tool_progress", "text", private), do("pause", "ms", 50),
		do("event", "type", "new_in_a_later_release"), do("stderr", "text", private), do("result", "text", "verdict: it is good"))
	a := f.call("claude-start", map[string]any{"prompt": prompt, "cwd": f.workspace})
	id := a.job()
	require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, id)
	next := fmt.Sprintf(`{"tool":"claude-status","arguments":{"jobId":%q,"cursor":0}}`, id)
	structured, err := json.Marshal(a.Structured)
	require.NoError(t, err)
	assert.JSONEq(t, fmt.Sprintf(`{"jobId":%q,"state":"starting","cursor":0,"message":"Claude: starting","resultAvailable":false,"next":%s}`, id, next), string(structured))

	var messages []string
	end := f.follow(id, func(a answer) bool {
		messages = append(messages, a.Structured["message"].(string))
		return a.state() == "completed"
	})
	assert.Equal(t, []string{"Claude: reviewer initialized", "Claude: reviewing", "Claude: inspecting repository", "Claude: completed"}, messages)
	assert.GreaterOrEqual(t, end.cursor(), 3)
	assert.Equal(t, map[string]any{"tool": "claude-result", "arguments": map[string]any{"jobId": id, "offset": 0.0}}, end.Structured["next"])
	assert.Equal(t, true, end.Structured["resultAvailable"])

	ahead := f.call("claude-status", map[string]any{"jobId": id, "cursor": end.cursor() + 1})
	assert.True(t, ahead.IsError)
	assert.Equal(t, map[string]any{"code": "status_cursor_ahead", "jobId": id, "cursor": float64(end.cursor())}, ahead.Structured)
	result := f.call("claude-result", map[string]any{"jobId": id})
	assert.Equal(t, map[string]any{"jobId": id, "state": "completed", "offset": 0.0, "nextOffset": 19.0, "endOffset": 19.0, "done": true,
		"resultTruncated": false, "text": "verdict: it is good"}, result.Structured)
	assert.Equal(t, "verdict: it is good", result.text())
	beyond := f.call("claude-result", map[string]any{"jobId": id, "offset": 20})
	assert.Equal(t, map[string]any{"code": "result_offset_out_of_range", "jobId": id, "offset": 20.0, "endOffset": 19.0}, beyond.Structured)
	assert.Equal(t, end.cursor(), f.call("claude-cancel", map[string]any{"jobId": id}).cursor(), "a job that is over stays as it is")

	for where, said := range map[string]string{"frames": f.seen.String(), "log": f.stderr.String()} {
		assert.NotContains(t, said, private, where)
	}
	assert.NotContains(t, f.stderr.String(), "verdict", "log")
	assert.Regexp(t, `Claude job terminal.*job_id=`+id+` state=completed attempts=1`, f.stderr.String())
	f.checkReviewStart(prompt)
}

func (f *fixture) checkReviewStart(prompt string) {
	f.t.Helper()
	runs := f.recorded()
	require.Len(f.t, runs, 1)
	argv := runs[0].Argv
	text := argv[len(argv)-1]
	assert.Equal(f.t, []string{"--model", "claude-opus-4-8", "--effort", "xhigh", "--no-session-persistence", "-p", "--input-format", "stream-json",
		"--output-format", "stream-json", "--verbose", "--setting-sources", "project", "--settings",
		`{"disableAllHooks":true,"disableAgentView":true,"disableArtifact":true}`, "--disable-slash-commands", "--strict-mcp-config",
		"--tools", "Bash,Glob,Grep,Read", "--permission-mode", "plan", "--append-system-prompt", text}, argv)
	for _, token := range []string{"leaf, read-only code reviewer", "do not delegate", "run tests"} {
		assert.Contains(f.t, text, token)
	}
	quoted, _ := json.Marshal(prompt)
	assert.JSONEq(f.t, fmt.Sprintf(`{"type":"user","message":{"role":"user","content":%s}}`, quoted), runs[0].Stdin)
	assert.True(f.t, strings.HasSuffix(runs[0].Stdin, "\n"))
	assert.Equal(f.t, f.workspace, runs[0].Dir)
	assert.Contains(f.t, runs[0].Env, "NO_COLOR=1")
}

// testJobArguments: what is wrong is named, and nothing is started.
func testJobArguments(t *testing.T) {
	f := start(t, nil)
	ws := f.workspace
	require.NoError(t, os.WriteFile(filepath.Join(ws, "file"), nil, 0o644))
	for name, tt := range map[string]struct {
		tool, args string
		want       []issue
	}{
		"nothing":             {"claude-start", `{}`, []issue{{"prompt", "is required"}, {"cwd", "is required"}}},
		"order":               {"claude-start", `{"z":1,"cwd":"rel","a":2}`, []issue{{"z", "is not supported"}, {"a", "is not supported"}, {"prompt", "is required"}, {"cwd", "must be an absolute path"}}},
		"blank":               {"claude-start", `{"prompt":" ","cwd":""}`, []issue{{"prompt", "must be a nonblank string"}, {"cwd", "must be a nonblank string"}}},
		"wrong kinds":         {"claude-start", `{"prompt":1,"cwd":null}`, []issue{{"prompt", "must be a nonblank string"}, {"cwd", "must be a nonblank string"}}},
		"timeout_ms":          {"claude-start", `{"prompt":"x","cwd":"` + ws + `","timeout_ms":1}`, []issue{{"timeout_ms", "is not supported"}}},
		"not there":           {"claude-start", `{"prompt":"x","cwd":"` + ws + `/none"}`, []issue{{"cwd", "must exist"}}},
		"a file":              {"claude-start", `{"prompt":"x","cwd":"` + ws + `/file"}`, []issue{{"cwd", "must be a directory"}}},
		"outside":             {"claude-start", `{"prompt":"x","cwd":"/usr"}`, []issue{{"cwd", "must be inside a workspace root: " + ws}}},
		"missing cursor":      {"claude-status", `{"jobId":"x"}`, []issue{{"cursor", "is required"}}},
		"a negative cursor":   {"claude-status", `{"jobId":"x","cursor":-1}`, []issue{{"cursor", "must be a non-negative integer"}}},
		"a fraction":          {"claude-status", `{"jobId":"x","cursor":0.5}`, []issue{{"cursor", "must be a non-negative integer"}}},
		"a long wait":         {"claude-status", `{"jobId":"x","cursor":0,"wait_ms":60001}`, []issue{{"wait_ms", "must be at most 60000"}}},
		"a wait in words":     {"claude-status", `{"jobId":"x","cursor":0,"wait_ms":"1"}`, []issue{{"wait_ms", "must be a non-negative integer"}}},
		"a negative offset":   {"claude-result", `{"jobId":"x","offset":-1}`, []issue{{"offset", "must be a non-negative integer"}}},
		"cancel without job":  {"claude-cancel", `{}`, []issue{{"jobId", "is required"}}},
		"cancel with a blank": {"claude-cancel", `{"jobId":" "}`, []issue{{"jobId", "must be a nonblank string"}}},
	} {
		t.Run(name, func(t *testing.T) {
			a := f.call(tt.tool, json.RawMessage(tt.args))
			assert.True(t, a.IsError)
			assert.Equal(t, "Invalid Claude job arguments", a.text())
			want, _ := json.Marshal(map[string]any{"code": "invalid_arguments", "issues": tt.want})
			got, _ := json.Marshal(a.Structured)
			assert.JSONEq(t, string(want), string(got))
		})
	}
	for _, tool := range []string{"claude-status", "claude-result", "claude-cancel"} {
		args := map[string]any{"jobId": "none"}
		if tool == "claude-status" {
			args["cursor"] = 0
		}
		a := f.call(tool, args)
		assert.True(t, a.IsError)
		assert.Equal(t, map[string]any{"code": "job_not_found", "jobId": "none"}, a.Structured)
	}
	assert.Empty(t, f.recorded(), "nothing was started")
}

// testCancel: a cancelled poll leaves the job alone, a cancelled job is
// interrupted and gone, its sibling goes on.
func testCancel(t *testing.T) {
	f := start(t, nil)
	sibling := f.review(script(do("event", "type", "assistant"), do("pause", "ms", 700), do("result", "text", "sibling")))
	id := f.review(script(do("event", "type", "assistant"), do("until-interrupt"), f.record(), do("stall")))
	running := f.follow(id, func(a answer) bool { return a.state() == "running" })

	poll := f.begin("claude-status", map[string]any{"jobId": id, "cursor": running.cursor(), "wait_ms": 60000})
	_, err := fmt.Fprintf(f.in, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`+"\n", poll)
	require.NoError(t, err)
	assert.Equal(t, "running", f.call("claude-status", map[string]any{"jobId": id, "cursor": 0}).state())

	canceling := f.call("claude-cancel", map[string]any{"jobId": id})
	assert.Equal(t, "canceling", canceling.state())
	assert.Equal(t, "Claude: canceling", canceling.Structured["message"])
	assert.False(t, canceling.IsError)
	end := f.over(id)
	assert.Equal(t, "canceled", end.state())
	assert.Equal(t, "Claude: canceled", end.Structured["message"])
	assert.NotContains(t, end.Structured, "next")
	assert.Contains(t, end.text(), "destroyed before its end is reported")
	runs := f.recorded()
	require.Len(t, runs, 1, "it was interrupted")
	assert.Contains(t, runs[0].Stdin, `"type":"control_request"`)
	assert.NoDirExists(t, fmt.Sprintf("/proc/%d", runs[0].PID), "and is gone once that is said")
	again := f.call("claude-cancel", map[string]any{"jobId": id})
	assert.Equal(t, end.cursor(), again.cursor())
	assert.False(t, again.IsError)

	assert.Equal(t, "completed", f.over(sibling).state())
	failed := f.call("claude-result", map[string]any{"jobId": id})
	assert.True(t, failed.IsError)
	assert.Equal(t, map[string]any{"jobId": id, "state": "canceled", "resultAvailable": false}, failed.Structured)
	assert.NotContains(t, f.seen.String(), fmt.Sprintf(`"id":%d,`, poll))
}

// TestStopLadder: nothing outlives a cancel, whatever it ignores.
func TestStopLadder(t *testing.T) {
	f := start(t, nil)
	for name, steps := range map[string][]map[string]any{
		"deaf":                {do("event", "type", "assistant"), do("ignore-term"), do("stall")},
		"with a grandchild":   {do("event", "type", "assistant"), do("linger"), do("ignore-term"), do("stall")},
		"exits but leaves":    {do("linger"), do("event", "type", "assistant"), do("until-interrupt"), do("exit")},
		"answers when told":   {do("event", "type", "assistant"), do("until-interrupt"), do("result", "text", "too late"), do("exit")},
		"fails when told":     {do("event", "type", "assistant"), do("until-interrupt"), do("result", "text", "x", "is_error", true), do("exit", "code", 1)},
		"floods without line": {do("event", "type", "assistant"), do("stdout-bytes", "repeat", 15<<20), do("stall")},
	} {
		t.Run(name, func(t *testing.T) {
			id := f.review(script(steps...))
			f.follow(id, func(a answer) bool { return a.state() == "running" })
			f.call("claude-cancel", map[string]any{"jobId": id})
			assert.Equal(t, "canceled", f.over(id).state())
			assert.Empty(t, f.processes(), "gone when that is said")
		})
	}
}

// testDeadline: the CLI is interrupted, then told to terminate, then killed with
// all that it left. Its job has failed and no other.
func testDeadline(t *testing.T) {
	f := start(t, func(c *Config) { c.JobTimeout = 500 * time.Millisecond })
	end := f.over(f.review(script(do("event", "type", "assistant"), do("until-interrupt"), f.record(), do("until-term"), f.record(), do("linger"), do("stall"))))
	assert.Equal(t, "failed", end.state())
	assert.Equal(t, "Claude: timed out after 500ms", end.Structured["message"])
	assert.Empty(t, f.processes())
	assert.Len(t, f.recorded(), 2, "it was interrupted, and then got TERM")
	assert.Equal(t, "completed", f.over(f.review(script(do("result", "text", "later")))).state())
	// The deadline spans the retry.
	end = f.over(f.review(script(do("pause", "ms", 350), do("result"))))
	assert.Equal(t, "failed", end.state())
	assert.Regexp(t, "timed out", end.Structured["message"])
}

// TestEnds: each way in which a review can end.
func TestEnds(t *testing.T) {
	f := start(t, nil)
	mark := filepath.Join(f.workspace, "first")
	for name, tt := range map[string]struct {
		steps          []map[string]any
		state, message string
		runs           int
	}{
		"a result":                         {[]map[string]any{do("result", "text", "ok")}, "completed", "Claude: completed", 1},
		"a result, exit 1":                 {[]map[string]any{do("result", "text", "ok"), do("exit", "code", 1)}, "completed", "Claude: completed", 1},
		"a result, then it never exits":    {[]map[string]any{do("result", "text", "ok"), do("ignore-term"), do("linger"), do("stall")}, "completed", "Claude: completed", 1},
		"the first result counts":          {[]map[string]any{do("stdout", "text", `{"type":"result","result":"ok"}`+"\n"+`{"type":"result","result":"x","is_error":true}`+"\n")}, "completed", "Claude: completed", 1},
		"an unterminated result":           {[]map[string]any{do("stdout", "text", `{"type":"result","result":"ok"}`), do("exit")}, "completed", "Claude: completed", 1},
		"a result about rate limits":       {[]map[string]any{do("result", "text", "Error: rate limit")}, "completed", "Claude: completed", 1},
		"63 an error":                      {[]map[string]any{do("result", "text", "secret of the provider", "is_error", true)}, "failed", "Claude: provider returned an error", 1},
		"no result":                        {[]map[string]any{do("event", "type", "assistant"), do("exit")}, "failed", "Claude: provider exited without a result", 1},
		"no result, killed":                {[]map[string]any{do("signal", "code", 9)}, "failed", "Claude: provider exited without a result", 1},
		"a blank result, twice":            {[]map[string]any{do("result")}, "failed", "Claude: returned an empty result twice", 2},
		"a result that is no text, twice":  {[]map[string]any{do("stdout", "text", `{"type":"result","result":{"a":1}}`+"\n")}, "failed", "Claude: returned an empty result twice", 2},
		"a blank result, then a good one":  {[]map[string]any{do("first-time", "path", mark), do("result"), do("result", "text", "ok")}, "completed", "Claude: completed", 2},
		"invalid UTF-8":                    {[]map[string]any{raw("{\"type\":\"assistant\",\"x\":\"\xff\"}\n\xfe\n"), raw("{\"type\":\"result\",\"result\":\"\xffok\"}\n")}, "completed", "Claude: completed", 1},
		"67 more than 10 MiB":              {[]map[string]any{do("result", "text", "é", "repeat", 5<<20+1)}, "failed", "Claude: final result exceeded the 10 MiB job limit", 1},
		"exactly 10 MiB":                   {[]map[string]any{do("result", "text", "é", "repeat", 5<<20)}, "completed", "Claude: completed", 1},
		"a line of more than 20 MiB":       {[]map[string]any{do("stdout-bytes", "repeat", 100<<20), do("stall")}, "failed", "Claude: one output event exceeded the stream safety limit", 1},
		"a child that stays in background": {[]map[string]any{do("linger"), do("result", "text", "ok"), do("exit")}, "completed", "Claude: completed", 1},
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(f.records)
			id := f.review(script(append([]map[string]any{f.record()}, tt.steps...)...))
			end := f.over(id)
			assert.Equal(t, tt.state, end.state())
			assert.Equal(t, tt.message, end.Structured["message"])
			assert.Len(t, f.recorded(), tt.runs)
			assert.Empty(t, f.processes())
			if tt.state != "completed" {
				assert.NotContains(t, end.Structured, "next")
				failed := f.call("claude-result", map[string]any{"jobId": id})
				assert.True(t, failed.IsError)
				assert.Contains(t, failed.text(), "Claude job "+id+" failed: "+tt.message)
			}
			assert.NotContains(t, f.seen.String(), "secret of the provider")
			assert.NotContains(t, f.stderr.String(), "secret of the provider")
		})
	}
}

// testRetryIsOneStatus: a blank result starts a second process for the same job.
func testRetryIsOneStatus(t *testing.T) {
	f := start(t, nil)
	mark := filepath.Join(f.workspace, "first")
	id := f.review(script(f.record(), do("event", "type", "assistant"), do("pause", "ms", 100), do("first-time", "path", mark), do("result"), do("result", "text", "ok")))
	end := f.over(id)
	assert.Equal(t, "completed", end.state())
	assert.Equal(t, id, end.job())
	assert.Equal(t, 4, end.cursor(), "reviewing, one retrying, reviewing, completed")
	assert.Equal(t, "ok", f.call("claude-result", map[string]any{"jobId": id}).text())
	runs := f.recorded()
	require.Len(t, runs, 2)
	assert.NotEqual(t, runs[0].PID, runs[1].PID)
	assert.Equal(t, runs[0].Stdin, runs[1].Stdin, "the same prompt")
	assert.Regexp(t, `state=completed attempts=2`, f.stderr.String())
}

// testProgressBesideStatus: exactly one notification before each status.
func testProgressBesideStatus(t *testing.T) {
	f := start(t, nil)
	id := f.review(script(do("event", "type", "assistant"), do("pause", "ms", 400), do("result", "text", "ok")))
	last, notes := 0.0, 0
	for cursor := 0; ; {
		call := f.send("tools/call", map[string]any{"name": "claude-status", "_meta": map[string]any{"progressToken": "mine"},
			"arguments": map[string]any{"jobId": id, "cursor": cursor, "wait_ms": 15000}})
		note := f.next()
		require.Equal(t, "notifications/progress", note.Method)
		var params struct {
			Token    string  `json:"progressToken"`
			Progress float64 `json:"progress"`
			Message  string  `json:"message"`
		}
		require.NoError(t, json.Unmarshal(note.Params, &params))
		assert.Equal(t, "mine", params.Token)
		assert.Greater(t, params.Progress, last)
		last = params.Progress
		notes++
		assert.True(t, strings.HasPrefix(params.Message, "Claude: "))
		r := f.next()
		require.Equal(t, float64(call), r.ID, "exactly one, before the result")
		a := f.result(r)
		assert.Equal(t, params.Message, a.Structured["message"])
		if cursor = a.cursor(); a.state() == "completed" {
			assert.GreaterOrEqual(t, notes, 2)
			return
		}
	}
}

func TestHeartbeat(t *testing.T) {
	f := start(t, nil)
	id := f.review(script(do("event", "type", "assistant"), do("until-interrupt")))
	running := f.follow(id, func(a answer) bool { return a.state() == "running" })
	a := f.call("claude-status", map[string]any{"jobId": id, "cursor": running.cursor(), "wait_ms": 50})
	assert.Regexp(t, `^Claude: still running; last activity \d+s ago$`, a.Structured["message"])
	assert.Equal(t, running.cursor(), a.cursor())
	pending := f.call("claude-result", map[string]any{"jobId": id})
	assert.False(t, pending.IsError)
	assert.Equal(t, false, pending.Structured["resultAvailable"])
	assert.Equal(t, "claude-status", pending.Structured["next"].(map[string]any)["tool"])
}

// testPaging: pages are counted in code points.
func testPaging(t *testing.T) {
	f := start(t, nil)
	id := f.review(script(do("result", "text", "🙂", "repeat", 32780)))
	require.Equal(t, "completed", f.over(id).state())
	first := f.call("claude-result", map[string]any{"jobId": id, "offset": 0})
	assert.Equal(t, strings.Repeat("🙂", 32768), first.text())
	assert.Equal(t, 32768.0, first.Structured["nextOffset"])
	assert.Equal(t, 32780.0, first.Structured["endOffset"])
	assert.Equal(t, false, first.Structured["done"])
	second := f.call("claude-result", map[string]any{"jobId": id, "offset": 32768})
	assert.Equal(t, strings.Repeat("🙂", 12), second.text())
	assert.Equal(t, true, second.Structured["done"])
	end := f.call("claude-result", map[string]any{"jobId": id, "offset": 32780})
	assert.False(t, end.IsError)
	assert.Equal(t, "", end.Structured["text"])
	assert.NotEmpty(t, end.text())
}

// testRetention: a job expires once it has been over for the time of retention,
// and not before it is over.
func testRetention(t *testing.T) {
	f := start(t, func(c *Config) { c.Retention = 80 * time.Millisecond })
	running := f.review(script(do("event", "type", "assistant"), do("until-interrupt")))
	id := f.review(script(do("result", "text", "ok")))
	require.Eventually(t, func() bool {
		a := f.call("claude-result", map[string]any{"jobId": id})
		return a.IsError && a.Structured["code"] == "job_not_found"
	}, 10*time.Second, 20*time.Millisecond, "it expires")
	assert.Regexp(t, `Claude job terminal.*job_id=`+id+` state=completed`, f.stderr.String())
	for tool, args := range map[string]map[string]any{"claude-status": {"jobId": id, "cursor": 0}, "claude-cancel": {"jobId": id}} {
		assert.Equal(t, map[string]any{"code": "job_not_found", "jobId": id}, f.call(tool, args).Structured, tool)
	}
	assert.False(t, f.call("claude-status", map[string]any{"jobId": running, "cursor": 0}).IsError, "one at work stays")
}

// testCapacity: a job too many is refused, and nothing is started for it.
func testCapacity(t *testing.T) {
	f := start(t, func(c *Config) { c.MaxActive, c.MaxRetained = 2, 2 })
	ids := []string{f.review(script(do("until-interrupt"))), f.review(script(do("until-interrupt")))}
	a := f.call("claude-start", map[string]any{"prompt": script(f.record()), "cwd": f.workspace})
	assert.True(t, a.IsError)
	assert.Equal(t, map[string]any{"code": "job_capacity_full", "activeJobs": 2.0, "retainedJobs": 2.0, "maxActiveJobs": 2.0, "maxRetainedJobs": 2.0}, a.Structured)
	for _, id := range ids {
		f.call("claude-cancel", map[string]any{"jobId": id})
		assert.Equal(t, "canceled", f.over(id).state(), "the others go on")
	}
	assert.Empty(t, f.recorded(), "the refused one was not started")
}

// testRetained: a full table gives up the oldest job that was read, and no other.
func testRetained(t *testing.T) {
	f := start(t, func(c *Config) { c.MaxRetained = 2 })
	var ids []string
	for _, text := range []string{"first", "second"} {
		ids = append(ids, f.review(script(do("result", "text", text))))
		require.Equal(t, "completed", f.over(ids[len(ids)-1]).state())
	}
	refused := f.call("claude-start", map[string]any{"prompt": "x", "cwd": f.workspace})
	assert.Equal(t, "job_capacity_full", refused.Structured["code"], "none was read so far")
	for _, id := range ids {
		assert.Equal(t, true, f.call("claude-result", map[string]any{"jobId": id}).Structured["done"])
	}
	third := f.review(script(do("result", "text", "third")))
	assert.Equal(t, "job_not_found", f.call("claude-status", map[string]any{"jobId": ids[0], "cursor": 0}).Structured["code"])
	assert.Equal(t, "second", f.call("claude-result", map[string]any{"jobId": ids[1]}).text(), "the newer one stays")
	assert.Equal(t, "completed", f.over(third).state())
}

// testDisconnect: what runs when the client leaves is interrupted and reaped.
func testDisconnect(t *testing.T) {
	f := start(t, nil)
	id := f.review(script(do("event", "type", "assistant"), do("until-interrupt"), f.record(), do("exit")))
	f.follow(id, func(a answer) bool { return a.state() == "running" })
	require.True(t, f.Busy())
	require.NoError(t, f.in.Close())
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	f.Close(ctx)
	require.NoError(t, ctx.Err())
	assert.Len(t, f.recorded(), 1)
	assert.False(t, f.Busy())
	assert.Regexp(t, "state=canceled", f.stderr.String())
	assert.NoDirExists(t, fmt.Sprintf("/proc/%d", f.recorded()[0].PID))
	assert.Empty(t, f.processes())
}

// TestManyAtOnce: eight reviews side by side, a ninth is refused.
func TestManyAtOnce(t *testing.T) {
	f := start(t, nil)
	var ids []string
	for i := range 8 {
		ids = append(ids, f.review(script(do("until-interrupt"), do("result", "text", fmt.Sprint(i)))))
	}
	assert.True(t, f.call("claude-start", map[string]any{"prompt": "x", "cwd": f.workspace}).IsError)
	for _, id := range ids {
		f.call("claude-cancel", map[string]any{"jobId": id})
	}
	for _, id := range ids {
		assert.Equal(t, "canceled", f.over(id).state())
	}
}
