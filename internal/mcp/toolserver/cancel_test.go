package toolserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/stdio"
)

// journal keeps what two writers wrote, in the order of their writes.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, string(p))
	return len(p), nil
}

// Cancels at random points around the completion of calls that report
// progress without a pause. An accepted cancel means no answer, another one
// means one answer, and both happen.
func TestCancelAroundCompletion(t *testing.T) {
	const rounds, atOnce = 2000, 8
	busy := Tool{Name: "busy", InputSchema: anySchema, Call: func(ctx context.Context, call Call) (Result, error) {
		end := time.NewTimer(time.Duration(numbers(call)["us"]) * time.Microsecond)
		defer end.Stop()
		for {
			call.Progress("busy")
			select {
			case <-end.C:
				return Result{Text: "done"}, nil
			case <-ctx.Done():
				return Result{Text: "too late"}, nil // an answer that must not leave
			case <-time.After(100 * time.Microsecond):
			}
		}
	}}
	seen := new(journal) // answers, and log lines of accepted cancels
	synctest.Test(t, func(t *testing.T) {
		server, err := New(Config{Tools: []Tool{busy}, Log: plainLog(seen, slog.LevelDebug)})
		require.NoError(t, err)
		in, w := io.Pipe()
		var serving, clients sync.WaitGroup
		serving.Go(func() { assert.NoError(t, server.Serve(t.Context(), in, seen)) })
		for client := range atOnce {
			clients.Go(func() {
				random := rand.New(rand.NewPCG(uint64(client), 36))
				for i := client; i < rounds; i += atOnce {
					at := random.IntN(50_000)
					call := progressLine(fmt.Sprint(i), "busy", fmt.Sprintf(`{"us":%d}`, at)) + "\n"
					if random.IntN(10) == 0 {
						_, _ = io.WriteString(w, call+cancelLine(fmt.Sprint(i))+"\n")
						continue
					}
					_, _ = io.WriteString(w, call)
					// At the very instant half of the time.
					time.Sleep(time.Duration(max(0, at+random.IntN(2)*(random.IntN(200)-100))) * time.Microsecond)
					_, _ = io.WriteString(w, cancelLine(fmt.Sprint(i))+"\n")
				}
			})
		}
		clients.Wait()
		require.NoError(t, w.Close())
		serving.Wait()
	})

	accepted, answers := map[string]bool{}, map[string]int{}
	cancelled := regexp.MustCompile(`msg="request cancelled" id=(\d+)`)
	for _, line := range seen.lines {
		var m map[string]json.RawMessage
		if json.Unmarshal([]byte(line), &m) != nil {
			if match := cancelled.FindStringSubmatch(line); match != nil {
				accepted[match[1]] = true
			}
		} else if id, answer := m["id"]; answer {
			answers[string(id)]++
			assert.NotContains(t, line, "too late")
			assert.False(t, accepted[string(id)], "an answer after the cancel of %s", id)
		}
	}
	for i := range rounds {
		id := fmt.Sprint(i)
		want := 1
		if accepted[id] {
			want = 0
		}
		assert.Equal(t, want, answers[id], "answers to %s, cancel accepted: %v", id, accepted[id])
	}
	t.Logf("%d cancelled, %d answered", len(accepted), len(answers))
	assert.Greater(t, len(accepted), rounds/10)
	assert.Greater(t, len(answers), rounds/10)
}

// A tool that reports until its last moment, from several goroutines that
// do not even stop then: no progress leaves after the answer.
func TestNoProgressAfterAnswer(t *testing.T) {
	const rounds, messages = 1000, 1000
	var stray sync.WaitGroup
	defer stray.Wait()
	flood := Tool{Name: "flood", InputSchema: anySchema, Call: func(_ context.Context, call Call) (Result, error) {
		stray.Go(func() {
			for range 100 {
				call.Progress("stray")
			}
		})
		for range messages {
			call.Progress("flood")
		}
		return Result{Text: "done"}, nil
	}}
	var in strings.Builder
	for i := range rounds {
		in.WriteString(strings.Replace(progressLine(fmt.Sprint(i), "flood", "{}"), `"t"`, fmt.Sprint(i), 1) + "\n")
	}
	server, err := New(Config{Tools: []Tool{flood}, Log: plainLog(io.Discard, 0)})
	require.NoError(t, err)
	out := newOutput()
	// The drain must not end before a slow machine is through.
	server.config.Stdio.DrainTimeout = 5 * time.Minute
	require.NoError(t, server.Serve(t.Context(), io.NopCloser(strings.NewReader(in.String())), out))

	answered, reported := map[string]bool{}, map[string]bool{}
	for _, m := range requireMessages(t, out.take()) {
		if id, answer := m["id"]; answer {
			answered[string(id)] = true
			continue
		}
		var p struct{ ProgressToken json.RawMessage }
		require.NoError(t, json.Unmarshal(m["params"], &p))
		require.False(t, answered[string(p.ProgressToken)], "progress after the answer of %s", p.ProgressToken)
		reported[string(p.ProgressToken)] = true
	}
	assert.Len(t, answered, rounds)
	assert.Len(t, reported, rounds, "the first message of each call leaves")
}

// Initialize cannot be cancelled, however close the cancel is.
func TestInitializeCannotBeCancelled(t *testing.T) {
	var in strings.Builder
	const rounds = 200
	for i := range rounds {
		fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"initialize"}`+"\n%s\n", i, cancelLine(fmt.Sprint(i)))
	}
	out, err := serveAll(t, in.String(), stdio.Options{})
	require.NoError(t, err)
	assert.Equal(t, rounds, strings.Count(out, "protocolVersion"))

	for method, want := range map[string]bool{methodInitialize: false, methodPing: true, methodCallTool: true} {
		table := newInflight(t.Context())
		req := &stdio.Request{Envelope: mcp.Envelope{ID: mcp.ParseID([]byte("1")), HasMethod: true, Method: method}}
		table.arrive(req)
		assert.Equal(t, want, table.cancel(req.ID), method)
		assert.Equal(t, !want, table.finish(table.take(req)), method)
	}
}

// The table against a model: an answer may be written exactly if the request
// was the first of its id and was not cancelled, and nothing stays behind.
func TestInflightModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := newInflight(context.Background())
		owner := map[string]*stdio.Request{}     // of an id in use
		handled := map[*stdio.Request]*request{} // not finished
		pick := rapid.SampledFrom([]string{"1", `"1"`, "1.0", "null", `""`})
		t.Repeat(map[string]func(*rapid.T){
			"arrive": func(t *rapid.T) {
				id := mcp.ParseID([]byte(pick.Draw(t, "id")))
				if !id.Usable() {
					t.Skip("refused before")
				}
				req := &stdio.Request{Envelope: mcp.Envelope{ID: id, HasMethod: true, Method: methodPing}}
				table.arrive(req)
				r := table.take(req)
				assert.Equal(t, owner[string(id.Raw)] != nil, r.duplicate)
				if !r.duplicate {
					owner[string(id.Raw)], handled[req] = req, r
				}
			},
			"cancel": func(t *rapid.T) {
				raw := pick.Draw(t, "id")
				req := owner[raw]
				assert.Equal(t, req != nil, table.cancel(mcp.ParseID([]byte(raw))))
				delete(owner, raw)
				if req != nil {
					assert.ErrorIs(t, context.Cause(handled[req].ctx), ErrCancelled)
				}
			},
			"finish": func(t *rapid.T) {
				for req, r := range handled {
					raw := string(req.ID.Raw)
					assert.Equal(t, owner[raw] == req, table.finish(r))
					if owner[raw] == req {
						delete(owner, raw)
					}
					delete(handled, req)
					return
				}
			},
			"": func(t *rapid.T) {
				assert.Len(t, table.open, len(owner))
				assert.Empty(t, table.arrived)
			},
		})
	})
}
