package codex

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/mcp/proxy"
	"mcpagents/internal/sandbox/wire"
	"mcpagents/internal/testkit/scenario"
)

// wildCodex answers each call in a way of its own: with floods, silences, ends
// without answers, late answers, answers in pieces, and every way to take a cancel.
type wildCodex struct {
	lock chan struct{} // of out: to wait for a mutex would hold the bubble's clock
	out  io.Writer

	mu     sync.Mutex // of rng
	rng    *rand.Rand
	calls  sync.WaitGroup
	quit   chan struct{}
	cancel sync.Map // id → channel
}

// start returns the Child of w.
func (w *wildCodex) start() *Child {
	stdinR, stdinW := io.Pipe()
	stdoutR, stdoutW := io.Pipe()
	w.out = stdoutW
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.serve(stdinR)
		stdoutW.Close()
	}()
	return &Child{Process: proxy.Process{Stdin: stdinW, Stdout: stdoutR, Stderr: strings.NewReader(""),
		Wait: func(ctx context.Context) (wire.Exit, error) {
			select {
			case <-done:
				return *exits(0), nil
			case <-ctx.Done():
				return wire.Exit{}, ctx.Err()
			}
		},
		Close: func(context.Context) error {
			close(w.quit)
			stdinR.Close()
			stdoutR.Close()
			<-done
			return nil
		}}}
}

// write writes whole lines, cut anywhere.
func (w *wildCodex) write(text string) {
	w.lock <- struct{}{}
	defer func() { <-w.lock }()
	for len(text) > 0 {
		n := 1 + w.roll(len(text))
		_, _ = io.WriteString(w.out, text[:n])
		text = text[n:]
	}
}

func (w *wildCodex) roll(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

func (w *wildCodex) serve(in io.Reader) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ RequestID json.RawMessage }
		}
		_ = json.Unmarshal(lines.Bytes(), &m)
		switch m.Method {
		case "initialize":
			w.write(scenario.WithID(scenario.NativeInitialize, string(m.ID)))
		case "tools/call":
			stop := make(chan struct{})
			w.cancel.Store(string(m.ID), stop)
			w.calls.Go(func() { w.call(string(m.ID), stop) })
		case "notifications/cancelled":
			if stop, ok := w.cancel.LoadAndDelete(string(m.Params.RequestID)); ok {
				close(stop.(chan struct{}))
			}
		}
	}
	w.calls.Wait()
}

func (w *wildCodex) call(id string, stop <-chan struct{}) {
	w.write(scenario.Event(id, "task_started", ""))
	for range w.roll(5) {
		switch w.roll(3) {
		case 0:
			w.write(strings.Repeat(scenario.Event(id, "exec_command_begin", `"call_id":"c"`)+scenario.Event(id, "exec_command_end", `"call_id":"c"`), w.roll(20)))
		case 1:
			w.write(scenario.Event(id, "agent_message", `"phase":"commentary","message":"`+fmt.Sprint(w.roll(9))+`"`))
		}
		select {
		case <-stop:
			w.stopped(id)
			return
		case <-time.After(time.Duration(w.roll(400)) * ms):
		}
	}
	end := scenario.Event(id, "task_complete", `"last_agent_message":"m"`)
	switch w.roll(6) {
	case 0: // silence, until it is stopped
		select {
		case <-stop:
			w.stopped(id)
		case <-w.quit:
		}
	case 1:
		w.write(end + scenario.Native(id, "answer"))
	case 2:
		w.write(end)
		time.Sleep(200 * ms)
		w.write(scenario.Native(id, "late"))
	case 3:
		w.write(scenario.Event(id, "turn_aborted", ""))
		time.Sleep(time.Second)
		w.write(scenario.Native(id, "late"))
	default:
		w.write(scenario.Native(id, "answer"))
	}
}

// stopped takes a cancel. A turn that says nothing at all leaves an answer
// owed, so few do.
func (w *wildCodex) stopped(id string) {
	switch w.roll(8) {
	case 0:
		w.write(scenario.Native(id, "answer"))
	case 1:
		time.Sleep(3 * time.Second)
		w.write(scenario.Native(id, "late"))
	case 2:
		w.write(scenario.Event(id, "turn_aborted", "") + scenario.Native(id, "answer"))
	default:
		w.write(scenario.Event(id, "turn_aborted", ""))
	}
}

// TestManyCalls plays hundreds of calls, eight at a time, with cancels, silences,
// floods and a client that stops reading.
func TestManyCalls(t *testing.T) {
	const calls = 700
	for seed := range uint64(3) {
		t.Run(fmt.Sprintf("185 188 176 seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { manyCalls(t, seed, calls) })
		})
	}
}

// messages are what came since the last look.
func (b *testBridge) messages() []scenario.Message {
	b.Helper()
	var all []scenario.Message
	for line := range strings.Lines(b.Output()) {
		var m scenario.Message
		require.NoError(b, json.Unmarshal([]byte(line), &m), "%q", line)
		all = append(all, m)
	}
	return all
}

// pass lets time pass.
func pass(d time.Duration) {
	time.Sleep(d) // of the bubble's clock
	synctest.Wait()
}

func manyCalls(t *testing.T, seed uint64, calls int) {
	b := startBridge(t, Config{Times: Times{Idle: 1500 * ms, Hard: 10 * time.Second, CancelGrace: time.Second, TerminalGrace: 100 * ms, FlushStall: time.Minute,
		StatusInterval: 100 * ms, ProgressInterval: 50 * ms, WaitInterval: 300 * ms}}, launched{wild: &wildCodex{lock: make(chan struct{}, 1), quit: make(chan struct{}), rng: rand.New(rand.NewPCG(seed, 1))}})
	b.Read()
	rng := rand.New(rand.NewPCG(seed, 2))
	b.Send(scenario.InitializeLine)
	b.Output()
	type state struct{ cancelled, answered bool }
	all := map[string]*state{}
	open := 0
	look := func() {
		for _, m := range b.messages() {
			switch {
			case m.Method == "notifications/progress":
				c := all[string(m.Params.ProgressToken)]
				require.False(t, c.answered, "progress after the answer of %s", m.Params.ProgressToken)
				require.False(t, c.cancelled, "progress after the cancel of %s", m.Params.ProgressToken)
			case m.Method == "":
				c := all[string(m.ID)]
				require.NotNil(t, c, "an answer to nothing: %s", m.ID)
				require.False(t, c.answered, "answered twice: %s", m.ID)
				require.False(t, c.cancelled, "answered after the cancel: %s", m.ID)
				c.answered = true
				open--
			}
		}
	}
	for i := 1; i <= calls; i++ {
		id := fmt.Sprint(100 + i)
		all[id] = &state{}
		open++
		b.Send(scenario.TurnCall(id, id))
		if rng.IntN(20) == 0 {
			b.Pause()
			pass(time.Duration(rng.IntN(500)) * ms)
			b.Resume()
		}
		for look(); open >= 8 || i == calls && open > 0; look() {
			pass(time.Duration(rng.IntN(60)) * ms)
			look()
			if rng.IntN(4) > 0 {
				continue
			}
			for id, c := range all {
				if !c.answered && !c.cancelled {
					b.Send(scenario.CancelLine(id))
					b.messages() // what crossed the cancel
					c.cancelled = true
					open--
					break
				}
			}
		}
	}
	pass(20 * time.Second)
	look()
	b.Send(scenario.ToolLine(9, "codex-peek", "{}"))
	assert.Contains(t, b.Output(), `"abandonedTurnsProcessWide":0`, "all were heard of again")
	assert.NotContains(t, b.Log.String(), "finalize")
	b.Disconnect()
	b.end(0)
}
