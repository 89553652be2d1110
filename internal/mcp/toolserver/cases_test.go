package toolserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/mcp/stdio"
)

// serveAll runs a server over a whole input and returns what it wrote.
func serveAll(t *testing.T, in string, opts stdio.Options) (string, error) {
	t.Helper()
	server, err := New(Config{
		Provider: "test", Name: "mcp-agents", Version: "1.2.3", Tools: testTools(new(record)),
		Stdio: opts, Log: plainLog(io.Discard, 0),
	})
	require.NoError(t, err)
	out := newOutput()
	err = server.Serve(t.Context(), io.NopCloser(strings.NewReader(in)), out)
	return out.take(), err
}

// Depth is bounded, the bound costs one message, and its id is answered.
func TestDepth(t *testing.T) {
	nested := func(depth int) string { // of the whole message
		return callLine("1", "ping", `{"a":`+strings.Repeat("[", depth-3)+strings.Repeat("]", depth-3)+`}`)
	}
	pong := textResult("1", "pong")
	deep := `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid Request: message nested too deeply: over 10000 levels"}}` + "\n"
	for _, c := range []struct{ name, in, want string }{
		{"50", nested(50), pong},
		{"100", nested(100), pong},
		{"126", nested(126), pong},
		{"10000", nested(10_000), pong},
		{"10001", nested(10_001), deep},
		{"2 MB of brackets", strings.Repeat("[", 2<<20), strings.Replace(deep, `"id":1`, `"id":null`, 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := drive(t, stdio.Options{})
				assert.Equal(t, c.want, d.line(c.in))
				assert.Equal(t, `{"jsonrpc":"2.0","id":2,"result":{}}`+"\n", d.line(`{"jsonrpc":"2.0","id":2,"method":"ping"}`))
				_, err := d.finish()
				require.NoError(t, err)
			})
		})
	}
}

// A server process with everything logged, whose tools print and panic,
// has nothing but messages on its standard output, and lives.
func TestStdoutHoldsOnlyMessages(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"=server")
	var in strings.Builder
	for i := range 20 {
		in.WriteString(progressLine(fmt.Sprint(i), "noise", "{}") + "\n")
	}
	in.WriteString("junk\n" + callLine("20", "panic", "{}") + "\n" + callLine("21", "ping", "{}") + "\n")
	cmd.Stdin = strings.NewReader(in.String())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), "exit status 0: %s", stderr.String())

	messages := requireMessages(t, stdout.String())
	assert.Len(t, messages, 20+20+3, "20 progress, 20 noise, junk, panic, ping")
	assert.Contains(t, stdout.String(), textResult("21", "pong"))
	for _, noise := range []string{"log", "slog", "println", "tool panicked", "goroutine ", "level=DEBUG"} {
		assert.Contains(t, stderr.String(), noise, "the noise was made")
	}
}

// What clients would refuse never gets as far as a list.
func TestNewRefusesTools(t *testing.T) {
	run := func(context.Context, Call) (Result, error) { return Result{}, nil }
	for _, c := range []struct{ name, schema, want string }{
		{"ok", `{"type":"object","properties":{"a":{"oneOf":[{"type":"string"}]}},"required":["a"],"additionalProperties":false}`, ""},
		{strings.Repeat("x", 32), `{"type":"object","properties":{}}`, ""},
		{strings.Repeat("x", 33), `{"type":"object","properties":{}}`, "must be 1 to 32 letters"},
		{"", `{"type":"object","properties":{}}`, "must be 1 to 32 letters"},
		{"a.b", `{"type":"object","properties":{}}`, "must be 1 to 32 letters"},
		{"é", `{"type":"object","properties":{}}`, "must be 1 to 32 letters"},
		{"ping", `{"type":"object","properties":{}}`, "tool ping: is there twice"},
		{"t", ``, "must be a JSON object"},
		{"t", `[]`, "must be a JSON object"},
		{"t", `null`, "must be a JSON object"},
		{"t", `{"properties":{}}`, `root must have type "object"`},
		{"t", `{"type":["object"],"properties":{}}`, `root must have type "object"`},
		{"t", `{"type":"object"}`, "root must have properties"},
		{"t", `{"type":"object","properties":[]}`, "root must have properties"},
		{"t", `{"type":"object","properties":{},"oneOf":[]}`, "tool t: input schema: root must not have oneOf"},
		{"t", `{"type":"object","properties":{},"anyOf":[]}`, "root must not have anyOf"},
		{"t", `{"type":"object","properties":{},"allOf":[]}`, "root must not have allOf"},
		{"t", `{"type":"object","properties":{},"not":{}}`, "root must not have not"},
		{"t", `{"type":"object","properties":{},"if":{}}`, "root must not have if"},
		{"t", `{"type":"object","properties":{},"$ref":"#"}`, "root must not have $ref"},
		{"t", `{"type":"object","properties":{},"enum":[]}`, "root must not have enum"},
	} {
		t.Run(c.name+" "+c.want, func(t *testing.T) {
			_, err := New(Config{Tools: []Tool{PingTool(), {Name: c.name, InputSchema: json.RawMessage(c.schema), Call: run}}})
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := New(Config{Tools: []Tool{{Name: "t", InputSchema: anySchema}}})
	require.ErrorContains(t, err, "tool t: has no function")
	assert.LessOrEqual(t, len("mcp__")+20+len("__")+32, 60)

	server, err := New(Config{})
	require.NoError(t, err)
	assert.JSONEq(t, `{"tools":[]}`, string(server.list), "an empty list is no null")
}

// A whole session in one piece: every answer, and no fault.
func TestPipedSession(t *testing.T) {
	var in strings.Builder
	in.WriteString(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
	for i := range 20 {
		fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`+"\n", i+1)
	}
	out, err := serveAll(t, in.String(), stdio.Options{})
	require.NoError(t, err)
	assert.Len(t, requireMessages(t, out), 21)

	calls := ""
	for i := range 20 {
		calls += callLine(fmt.Sprint(i), "sleep", `{"ms":1000}`) + "\n"
	}
	synctest.Test(t, func(t *testing.T) {
		out, err := serveAll(t, calls, stdio.Options{})
		require.NoError(t, err)
		assert.Equal(t, 20, strings.Count(out, "slept"))
	})
	t.Run("without the drain they are lost", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			out, err := serveAll(t, calls, stdio.Options{DrainTimeout: -1})
			require.NoError(t, err)
			assert.Zero(t, strings.Count(out, "slept"))
		})
	})
}

// A tool that ignores its context holds the end up only so long.
func TestStopIsBounded(t *testing.T) {
	for _, end := range []string{"signal", "input"} {
		synctest.Test(t, func(t *testing.T) {
			d := drive(t, stdio.Options{StopTimeout: 5 * time.Second})
			d.line(callLine("1", "stubborn", `{"ms":60000}`))
			started := time.Now()
			if end == "signal" {
				d.cancel(io.ErrNoProgress)
				<-d.ended
				require.ErrorIs(t, d.err, io.ErrNoProgress)
				assert.Equal(t, 10*time.Second, time.Since(started), "twice: for the tool, then for the loop")
			} else {
				_, err := d.finish()
				require.ErrorContains(t, err, "did not return within 5s")
				assert.Equal(t, DefaultDrainTimeout+5*time.Second, time.Since(started))
			}
			time.Sleep(time.Minute) // let the tool end
		})
	}
}

// A heartbeat that panics is silent, and the call goes on.
func TestHeartbeatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sick := testTools(new(record))[2]
		sick.Name, sick.Heartbeat = "sick", func(time.Duration) string { panic("secret of the model") }
		d := drive(t, stdio.Options{}, sick)
		assert.Empty(t, d.line(progressLine("1", "sick", `{"ms":50000}`)))
		time.Sleep(50 * time.Second)
		synctest.Wait()
		assert.Equal(t, textResult("1", "slept"), d.out.take())
		log := d.log.take()
		assert.Equal(t, 3, strings.Count(log, "tool panicked"))
		assert.NotContains(t, log, "secret")
		_, err := d.finish()
		require.NoError(t, err)
	})
}

// The cause of a context says who does not wait any more.
func TestContextCauses(t *testing.T) {
	for _, c := range []struct {
		end  func(*driver)
		want string
	}{
		{func(d *driver) { d.send(cancelLine("1") + "\n") }, ErrCancelled.Error()},
		{func(d *driver) { _, _ = d.finish() }, ErrClientGone.Error()},
		{func(d *driver) { d.cancel(io.ErrNoProgress); synctest.Wait() }, io.ErrNoProgress.Error()},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := drive(t, stdio.Options{})
			d.line(callLine("1", "sleep", `{"ms":60000}`))
			assert.Empty(t, d.causes())
			c.end(d)
			assert.Equal(t, []string{c.want}, d.causes())
			if d.running() {
				_, err := d.finish()
				require.NoError(t, err)
			}
		})
	}
}

// A client that stops reading stops neither the reading of its messages
// nor its cancels; progress is merged, no answer is lost, and memory is bounded.
func TestStuckOutput(t *testing.T) {
	const calls, messages = 200, 1000
	filler := strings.Repeat("x", 1<<10)
	flood := Tool{Name: "flood", InputSchema: anySchema, Call: func(_ context.Context, call Call) (Result, error) {
		for i := range messages {
			call.Progress(fmt.Sprintf("%d %s", i, filler))
		}
		return Result{Text: "flooded"}, nil
	}}
	synctest.Test(t, func(t *testing.T) {
		d := drive(t, stdio.Options{}, flood)
		before := heap()
		d.out.set(true, nil)
		d.send(callLine(`"c"`, "sleep", `{"ms":600000}`) + "\n")
		for i := range calls {
			d.send(strings.Replace(progressLine(fmt.Sprint(i), "flood", "{}"), `"t"`, fmt.Sprint(i), 1) + "\n")
		}
		d.send(cancelLine(`"c"`) + "\n")
		assert.Equal(t, []string{ErrCancelled.Error()}, d.causes(), "the cancel arrived")
		assert.Less(t, heap()-before, int64(64<<20))
		assert.Empty(t, d.out.take())

		d.out.set(false, nil)
		synctest.Wait()
		answered, last := map[string]bool{}, 0.0
		all := requireMessages(t, d.out.take())
		for _, m := range all {
			if id, answer := m["id"]; answer {
				assert.False(t, answered[string(id)], "one answer for %s", id)
				answered[string(id)] = true
				continue
			}
			var p struct{ ProgressToken, Progress float64 }
			require.NoError(t, json.Unmarshal(m["params"], &p))
			assert.False(t, answered[fmt.Sprint(p.ProgressToken)], "progress after the answer")
			assert.Greater(t, p.Progress, last)
			last = p.Progress
		}
		assert.Len(t, answered, calls)
		assert.LessOrEqual(t, len(all), 2*calls)
		_, err := d.finish()
		require.NoError(t, err)
	})
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Of calls that are cancelled while the output is stuck, nothing leaves but
// the one frame that the output has.
func TestStuckOutputThenCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := drive(t, stdio.Options{})
		d.out.set(true, nil)
		for _, id := range []string{"1", "2", "3"} {
			d.send(progressLine(id, "count", `{"to":9,"ms":100}`) + "\n")
		}
		for _, id := range []string{"1", "2", "3"} {
			d.send(cancelLine(id) + "\n")
		}
		assert.Len(t, d.causes(), 3)
		d.out.set(false, nil)
		assert.Equal(t, `{"jsonrpc":"2.0","id":4,"result":{}}`, strings.TrimSpace(strings.TrimPrefix(d.line(`{"jsonrpc":"2.0","id":4,"method":"ping"}`),
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1,"message":"step 1"}}`+"\n")))
		_, err := d.finish()
		require.NoError(t, err)
	})
}

// Ends that are no signal have their reasons, too.
func TestReasons(t *testing.T) {
	t.Run("idle, but never while a call runs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := drive(t, stdio.Options{IdleTimeout: time.Minute})
			d.line(callLine("1", "sleep", `{"ms":600000}`))
			time.Sleep(10*time.Minute + 59*time.Second)
			assert.True(t, d.running())
			time.Sleep(time.Second)
			assert.False(t, d.running())
			require.NoError(t, d.err)
			assert.Contains(t, d.log.take(), "reason=idle-timeout")
		})
	})
	t.Run("the parent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := drive(t, stdio.Options{Watchdog: stdio.Watchdog{Interval: time.Second, Probe: func(int) error { return os.ErrProcessDone }}})
			d.line(callLine("1", "sleep", `{"ms":600000}`))
			time.Sleep(time.Second)
			assert.False(t, d.running())
			require.NoError(t, d.err)
			assert.Contains(t, d.log.take(), "reason=parent-exit")
			assert.Equal(t, []string{ErrClientGone.Error()}, d.causes())
		})
	})
	t.Run("a broken input", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := drive(t, stdio.Options{})
			require.NoError(t, d.in.CloseWithError(io.ErrUnexpectedEOF))
			<-d.ended
			require.ErrorIs(t, d.err, io.ErrUnexpectedEOF)
			assert.Contains(t, d.log.take(), "reason=stdin-close")
		})
	})
	t.Run("an output that is full", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := drive(t, stdio.Options{})
			d.out.set(false, io.ErrShortWrite)
			d.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n")
			<-d.ended
			require.ErrorIs(t, d.err, io.ErrShortWrite)
			assert.Contains(t, d.log.take(), "reason=stdout-error")
		})
	})
}

// A server whose client does not read can still be stopped.
func TestStuckOutputThenStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := drive(t, stdio.Options{})
		d.line(callLine("1", "sleep", `{"ms":600000}`))
		d.out.set(true, nil)
		d.send(progressLine("2", "count", `{"to":9,"ms":100}`) + "\n")
		d.cancel(io.ErrNoProgress)
		synctest.Wait()
		assert.Len(t, d.causes(), 2, "the tools are told at once")
		started := time.Now()
		<-d.ended
		require.ErrorIs(t, d.err, io.ErrNoProgress)
		assert.LessOrEqual(t, time.Since(started), 11*time.Second)
	})
}
