package toolserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/mcp/stdio"
)

// driver is a client that writes raw bytes to a server and sees what comes out.
// It is for use inside a synctest bubble.
type driver struct {
	t      *testing.T
	in     *io.PipeWriter
	out    *output
	log    *output
	cancel context.CancelCauseFunc
	ended  chan struct{}
	err    error
	*record
}

// record is what the test tools saw.
type record struct {
	mu   sync.Mutex
	runs int
	ends []string // causes of ended contexts
}

func (r *record) ran() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs++
}

func (r *record) executed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.runs
}

func (r *record) contextEnded(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends = append(r.ends, context.Cause(ctx).Error())
}

func (r *record) causes() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.ends...)
}

func drive(t *testing.T, opts stdio.Options, more ...Tool) *driver {
	d := &driver{t: t, out: newOutput(), log: newOutput(), ended: make(chan struct{}), record: new(record)}
	in, w := io.Pipe()
	d.in = w
	ctx, cancel := context.WithCancelCause(t.Context())
	d.cancel = cancel
	server, err := New(Config{
		Provider: "test", Name: "mcp-agents", Version: "1.2.3",
		Tools: append(testTools(d.record), more...), Stdio: opts, Log: plainLog(d.log, slog.LevelInfo),
	})
	require.NoError(t, err)
	go func() {
		defer close(d.ended)
		d.err = server.Serve(ctx, in, d.out)
	}()
	t.Cleanup(func() { cancel(nil) })
	synctest.Wait()
	return d
}

// plainLog writes lines without times.
func plainLog(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{
		Level: level,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "stack" {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// send writes raw bytes and waits until the server has come to rest.
func (d *driver) send(raw string) {
	d.t.Helper()
	_, err := io.WriteString(d.in, raw)
	require.NoError(d.t, err)
	synctest.Wait()
}

// line sends one message and returns what came out because of it.
func (d *driver) line(message string) string {
	d.t.Helper()
	d.send(message + "\n")
	return d.out.take()
}

func (d *driver) running() bool {
	synctest.Wait()
	select {
	case <-d.ended:
		return false
	default:
		return true
	}
}

// finish ends the input and returns what was written since the last look, and
// Serve's error.
func (d *driver) finish() (string, error) {
	d.t.Helper()
	require.NoError(d.t, d.in.Close())
	<-d.ended
	return d.out.take(), d.err
}

// output takes bytes unless it is blocked or broken.
type output struct {
	mu     sync.Mutex
	change *sync.Cond
	buf    bytes.Buffer
	block  bool
	err    error
}

func newOutput() *output {
	o := &output{}
	o.change = sync.NewCond(&o.mu)
	return o
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.block && o.err == nil {
		o.change.Wait()
	}
	if o.err != nil {
		return 0, o.err
	}
	return o.buf.Write(p)
}

func (o *output) Close() error { o.set(false, io.ErrClosedPipe); return nil }

func (o *output) set(block bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.block, o.err = block, err
	o.change.Broadcast()
}

// take returns what was written since the last time.
func (o *output) take() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.buf.Reset()
	return o.buf.String()
}

var anySchema = json.RawMessage(`{"type":"object","properties":{}}`)

// numbers decodes arguments such as {"ms":5}.
func numbers(call Call) map[string]int {
	var n map[string]int
	_ = json.Unmarshal(call.Arguments, &n)
	return n
}

// testTools are tools whose work is plain to see.
func testTools(r *record) []Tool {
	tool := func(name string, call func(context.Context, Call) (Result, error)) Tool {
		return Tool{Name: name, Description: "Test: " + name + ".", InputSchema: anySchema, Call: call}
	}
	pause := func(ctx context.Context, d time.Duration) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			r.contextEnded(ctx)
			return ctx.Err()
		}
	}
	sleep := func(ctx context.Context, call Call) (Result, error) {
		r.ran()
		return Result{Text: "slept"}, pause(ctx, time.Duration(numbers(call)["ms"])*time.Millisecond)
	}
	beat := tool("beat", sleep)
	beat.Heartbeat = func(elapsed time.Duration) string { return fmt.Sprintf("still running after %v", elapsed) }
	return []Tool{
		PingTool(),
		tool("zebra", func(_ context.Context, call Call) (Result, error) {
			r.ran()
			return Result{Text: string(call.Arguments)}, nil
		}),
		tool("sleep", sleep),
		beat,
		tool("count", func(ctx context.Context, call Call) (Result, error) {
			n := numbers(call)
			for i := range n["to"] {
				call.Progress(fmt.Sprintf("step %d", i+1))
				if err := pause(ctx, time.Duration(n["ms"])*time.Millisecond); err != nil {
					return Result{}, err
				}
			}
			return Result{Text: "counted"}, nil
		}),
		tool("job", func(_ context.Context, call Call) (Result, error) {
			failed := numbers(call)["fail"] == 1
			return Result{Text: "job 7 <done>", Structured: map[string]any{"jobId": 7, "state": "<done>"}, IsError: failed}, nil
		}),
		tool("stubborn", func(_ context.Context, call Call) (Result, error) {
			return Result{Text: "done"}, pause(context.Background(), time.Duration(numbers(call)["ms"])*time.Millisecond)
		}),
		tool("runs", func(context.Context, Call) (Result, error) { return Result{Text: fmt.Sprint(r.executed())}, nil }),
		tool("fault", func(context.Context, Call) (Result, error) { return Result{}, errors.New("start agent: no such image") }),
		tool("panic", func(context.Context, Call) (Result, error) { panic("secret of the model") }),
		tool("bad", func(context.Context, Call) (Result, error) { return Result{Structured: math.NaN()}, nil }),
	}
}

func callLine(id, tool, arguments string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `}}`
}

// progressLine is a call under the token "t".
func progressLine(id, tool, arguments string) string {
	return strings.Replace(callLine(id, tool, arguments), `"params":{`, `"params":{"_meta":{"progressToken":"t"},`, 1)
}

func cancelLine(id string) string {
	return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`
}

func textResult(id, text string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"` + text + `"}]}}` + "\n"
}

// requireMessages fails unless every line is a JSON-RPC message that a client
// may get: an answer, or a notification.
func requireMessages(t *testing.T, out string) []map[string]json.RawMessage {
	t.Helper()
	var all []map[string]json.RawMessage
	require.True(t, out == "" || strings.HasSuffix(out, "\n"), "the last line is whole")
	for line := range strings.Lines(out) {
		var m map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(line), &m), line)
		require.JSONEq(t, `"2.0"`, string(m["jsonrpc"]), line)
		if _, answer := m["id"]; answer {
			_, result := m["result"]
			_, fault := m["error"]
			assert.True(t, result != fault, line)
		} else {
			assert.JSONEq(t, `"notifications/progress"`, string(m["method"]), line)
		}
		all = append(all, m)
	}
	return all
}
