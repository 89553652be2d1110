package codex

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"mcpagents/internal/agent/job"
	"mcpagents/internal/mcp/proxy"
	"mcpagents/internal/mcp/stdio"
	"mcpagents/internal/sandbox/wire"
	"mcpagents/internal/testkit/scenario"
)

// benchBridge is a bridge between pipes, without a sandbox.
type benchBridge struct {
	in       *io.PipeWriter // of the client
	out      *bufio.Reader
	codexIn  *bufio.Reader
	codexOut *io.PipeWriter
	stop     func()
}

func newBenchBridge(b *testing.B, t Times) *benchBridge {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	stdinR, stdinW := io.Pipe()
	stdoutR, stdoutW := io.Pipe()
	child := &Child{Process: proxy.Process{Stdin: stdinW, Stdout: stdoutR, Stderr: strings.NewReader(""),
		Wait:  func(ctx context.Context) (wire.Exit, error) { <-ctx.Done(); return wire.Exit{}, ctx.Err() },
		Close: func(context.Context) error { stdinR.Close(); stdoutR.Close(); return nil }}}
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		Run(ctx, Config{Times: t, Log: slog.New(slog.DiscardHandler), Launch: func(context.Context) (*Child, error) { return child, nil }}, inR, outW)
	}()
	bb := &benchBridge{in: inW, out: bufio.NewReaderSize(outR, 1<<20), codexIn: bufio.NewReaderSize(stdinR, 1<<20), codexOut: stdoutW,
		stop: func() { cancel(stdio.Signal(15)); outR.Close(); <-done }}
	b.Cleanup(bb.stop)
	bb.send(scenario.InitializeLine)
	bb.line(bb.codexIn)
	bb.says(scenario.WithID(scenario.NativeInitialize, 1))
	bb.line(bb.out)
	return bb
}

func (bb *benchBridge) send(s string) { _, _ = io.WriteString(bb.in, s+"\n") }
func (bb *benchBridge) says(s string) { _, _ = io.WriteString(bb.codexOut, s) }
func (bb *benchBridge) line(r *bufio.Reader) string {
	s, _ := r.ReadString('\n')
	return s
}

// BenchmarkFrame is the time that an event of Codex takes to the client, with
// several calls open, each with a progress token or none. Its baseline is the
// same frame through two pipes and a copy.
func BenchmarkFrame(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		fromR, fromW := io.Pipe()
		toR, toW := io.Pipe()
		go func() { _, _ = io.Copy(toW, fromR) }()
		defer fromW.Close()
		r := bufio.NewReaderSize(toR, 1<<20)
		frame := scenario.Event(100, "token_count", "")
		for b.Loop() {
			_, _ = io.WriteString(fromW, frame)
			_, _ = r.ReadString('\n')
		}
	})
	for _, calls := range []int{1, 8, 64} {
		for _, progress := range []bool{false, true} {
			b.Run(fmt.Sprintf("calls=%d/progress=%t", calls, progress), func(b *testing.B) {
				t := DefaultTimes()
				bb := newBenchBridge(b, t)
				for i := range calls {
					token := ""
					if progress {
						token = fmt.Sprint(i)
					}
					bb.send(scenario.TurnCall(100+i, token))
					bb.line(bb.codexIn)
				}
				i := 0
				for b.Loop() {
					bb.says(scenario.Event(100+i%calls, "exec_command_begin", `"call_id":"c"`))
					for !strings.Contains(bb.line(bb.out), "codex/event") { // progress between
						continue
					}
					i++
				}
			})
		}
	}
}

// BenchmarkStatusPoll is a status call that does not wait, there and back.
func BenchmarkStatusPoll(b *testing.B) {
	bb := newBenchBridge(b, DefaultTimes())
	bb.send(scenario.ToolLine(2, "codex-start", `{"prompt":"p","cwd":"/ws","sandbox":"read-only"}`))
	bb.line(bb.codexIn)
	_, rest, _ := strings.Cut(bb.line(bb.out), `"jobId":"`)
	poll := scenario.ToolLine(3, "codex-status", scenario.Job(rest[:36], `,"cursor":0,"wait_ms":0`))
	for b.Loop() {
		bb.send(poll)
		bb.line(bb.out)
	}
}

// BenchmarkRetainedJob is the life of a job without a result; B/job is the memory
// that it keeps until it expires, beside its result and commentary.
func BenchmarkRetainedJob(b *testing.B) {
	newTable := func() *job.Table {
		return job.NewTable(job.Config{Contract: job.Codex, After: func(time.Duration, func()) func() { return func() {} }})
	}
	fill := func(t *job.Table) {
		for range job.MaxRetained {
			j, _ := t.Start()
			j.Active()
			j.Complete("")
		}
	}
	var before, after runtime.MemStats
	tables := make([]*job.Table, 200)
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range tables {
		tables[i] = newTable()
		fill(tables[i])
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(tables)
	for b.Loop() {
		fill(newTable())
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(len(tables)*job.MaxRetained), "B/job")
}
