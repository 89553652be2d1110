package codex

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/provider/codex/codextest"
	"mcpagents/internal/provider/passthrough"
	"mcpagents/internal/stdio"
	"mcpagents/internal/wire"
)

// fakeCodex is a Codex in memory that plays a script.
type fakeCodex struct {
	version string
	old     bool // without a table of agents
	script  []step
	// deaf says that it never reads its stdin, but plays its script at once.
	deaf bool
	// closing, if set, holds its destruction back.
	closing chan struct{}

	mu       sync.Mutex
	received bytes.Buffer
	closed   int
	playing  sync.WaitGroup

	// What a test that speaks for Codex itself writes to, and ends it by.
	stdout, stderr io.Writer
	end            func(e wire.Exit, late string)
	invalidated    int
	// muted says that from its next line on it reads nothing.
	muted atomic.Bool
}

// step waits for a line of the client that contains on ("" waits for none),
// then writes out and err, and ends if exit is set. $id is the last line's id.
type step struct {
	on   string
	out  string
	err  string
	exit *wire.Exit
	// late is what comes on stderr a second after the exit.
	late string
}

const (
	initializedLine = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

	localInitialize = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"mcp-agents","version":"1.2.3"}}}`
)

// handshakeSteps are those of a Codex that works.
func handshakeSteps(more ...step) []step {
	return append([]step{{on: `"initialize"`, out: codextest.NativeInitialize}}, more...)
}

func exits(code int) *wire.Exit { return &wire.Exit{Code: code, Reason: wire.ReasonExit} }

// start returns the Child of f and plays the script.
func (f *fakeCodex) start() *Child {
	stdinR, stdinW := io.Pipe()
	stdoutR, stdoutW := io.Pipe()
	stderrR, stderrW := io.Pipe()
	exit := make(chan wire.Exit, 1)
	end := func(e wire.Exit, late string) {
		stdoutW.Close()
		exit <- e
		if late != "" {
			time.Sleep(time.Second) // of the bubble's clock
			io.WriteString(stderrW, late)
		}
		stderrW.Close()
	}
	f.stdout, f.stderr, f.end = stdoutW, stderrW, end
	f.playing.Go(func() { f.play(stdinR, stdoutW, stderrW, end) })
	process := passthrough.Process{
		Stdin: stdinW, Stdout: stdoutR, Stderr: stderrR,
		Wait: func(ctx context.Context) (wire.Exit, error) {
			select {
			case e := <-exit:
				return e, nil
			case <-ctx.Done():
				return wire.Exit{}, ctx.Err()
			}
		},
		Close: func(context.Context) error {
			f.mu.Lock()
			f.closed++
			f.mu.Unlock()
			for _, c := range []io.Closer{stdinR, stdoutR, stderrR, stdoutW, stderrW} {
				c.Close()
			}
			f.playing.Wait()
			if f.closing != nil {
				<-f.closing
			}
			return nil
		},
	}
	return &Child{Process: process, Invalidate: func() { f.invalidated++ }, Version: f.version, Agents: !f.old}
}

func (f *fakeCodex) play(stdin io.Reader, stdout, stderr io.Writer, end func(wire.Exit, string)) {
	lines := bufio.NewReader(stdin)
	id := "null"
	next := func() (string, error) {
		line, err := lines.ReadString('\n')
		f.mu.Lock()
		f.received.WriteString(line)
		f.mu.Unlock()
		var message struct{ ID json.RawMessage }
		if json.Unmarshal([]byte(line), &message) == nil && message.ID != nil {
			id = string(message.ID)
		}
		return line, err
	}
	for _, s := range f.script {
		for s.on != "" {
			line, err := next()
			if err != nil {
				end(*exits(0), "") // as Codex does at the end of its input
				return
			}
			if strings.Contains(line, s.on) {
				break
			}
		}
		io.WriteString(stderr, s.err)
		io.WriteString(stdout, strings.ReplaceAll(s.out, "$id", id))
		if s.exit != nil {
			end(*s.exit, s.late)
			return
		}
	}
	for !f.deaf {
		_, err := next()
		if f.muted.Load() {
			return
		}
		if err != nil {
			end(*exits(0), "")
			return
		}
	}
}

func (f *fakeCodex) got() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.received.String()
}

// testBridge is a bridge under test and its client.
type testBridge struct {
	*testing.T
	in     *io.PipeWriter
	outR   *io.PipeReader
	cancel context.CancelCauseFunc
	code   chan int
	log    *syncBuffer

	mu       sync.Mutex
	out      bytes.Buffer
	reading  sync.WaitGroup
	launches int
	gate     chan struct{} // full: the client does not read
	codexes  []*fakeCodex
}

type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// launched is what one launch gives: a Codex, or an error. The gate, if there
// is one, holds it back.
type launched struct {
	codex *fakeCodex
	wild  *wildCodex // in place of codex
	err   error
	gate  chan struct{}
}

// startBridge runs a bridge whose launches give the results in turn, the last
// one again and again. It must be called in a synctest bubble.
func startBridge(t *testing.T, cfg Config, results ...launched) *testBridge {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	b := &testBridge{T: t, in: inW, outR: outR, code: make(chan int, 1), log: &syncBuffer{}, gate: make(chan struct{}, 1)}
	var ctx context.Context
	ctx, b.cancel = context.WithCancelCause(context.Background())
	cfg.Version = "1.2.3"
	cfg.Log = slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	cfg.Launch = func(ctx context.Context) (*Child, error) {
		r := results[min(b.launches, len(results)-1)]
		b.launches++
		if r.gate != nil {
			select {
			case <-r.gate:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if r.err != nil {
			return nil, r.err
		}
		if r.wild != nil {
			return r.wild.start(), nil
		}
		b.mu.Lock()
		b.codexes = append(b.codexes, r.codex)
		b.mu.Unlock()
		return r.codex.start(), nil
	}
	t.Cleanup(func() { // after a failed assertion; otherwise everything has ended
		b.cancel(stdio.Signal(9))
		b.in.Close()
		b.outR.Close()
		b.reading.Wait()
	})
	go func() {
		code := Run(ctx, cfg, inR, outW)
		outW.Close()
		b.code <- code
	}()
	synctest.Wait() // a launch that nothing holds back is over
	return b
}

// read collects what the bridge writes.
func (b *testBridge) read() {
	b.reading.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := b.outR.Read(buf)
			b.gate <- struct{}{}
			b.mu.Lock()
			b.out.Write(buf[:n])
			b.mu.Unlock()
			<-b.gate
			if err != nil {
				return
			}
		}
	})
}

// send writes lines and waits until everybody has done with them.
func (b *testBridge) send(lines ...string) {
	b.Helper()
	_, err := io.WriteString(b.in, strings.Join(lines, "\n")+"\n")
	require.NoError(b, err)
	synctest.Wait()
}

// output returns everything that came since the last call.
func (b *testBridge) output() string {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.out.String()
	b.out.Reset()
	return out
}

// expect asserts what came since the last call, line by line.
func (b *testBridge) expect(lines ...string) {
	b.Helper()
	want := ""
	for _, l := range lines {
		want += strings.TrimSuffix(l, "\n") + "\n"
	}
	require.Equal(b, want, b.output())
}

// end waits for the bridge, and asserts its exit status and that every child
// was closed exactly once.
func (b *testBridge) end(code int) {
	b.Helper()
	require.Equal(b, code, <-b.code)
	b.ended()
}

// ended asserts what holds after the bridge's end.
func (b *testBridge) ended() {
	b.Helper()
	b.in.Close()
	b.outR.Close()
	b.reading.Wait()
	for i, c := range b.codexes {
		assert.Equal(b, 1, c.closed, "child %d is closed exactly once", i+1)
	}
}

// disconnect ends the client's messages.
func (b *testBridge) disconnect() { b.in.Close(); synctest.Wait() }

// anyList is the recorded list as the answer to any request.

// pause makes the client stop reading, but for what it is about to read, until
// resume.
func (b *testBridge) pause() { b.gate <- struct{}{} }

func (b *testBridge) resume() { <-b.gate; synctest.Wait() }
