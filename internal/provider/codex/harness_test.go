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

	"mcpagents/internal/mcp/proxy"
	"mcpagents/internal/sandbox/wire"
	"mcpagents/internal/testkit/proxyclient"
	"mcpagents/internal/testkit/scenario"
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
	return append([]step{{on: `"initialize"`, out: scenario.NativeInitialize}}, more...)
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
	process := proxy.Process{
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
	*proxyclient.Client
	launches int
	mu       sync.Mutex // of codexes
	codexes  []*fakeCodex
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
	b := &testBridge{}
	cfg.Version = "1.2.3"
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
	b.Client = proxyclient.Start(t, func(ctx context.Context, log *slog.Logger, in io.Reader, out io.Writer) int {
		cfg.Log = log
		return Run(ctx, cfg, in, out)
	})
	synctest.Wait() // a launch that nothing holds back is over
	return b
}

// end waits for the bridge, and asserts its exit status and that every child
// was closed exactly once.
func (b *testBridge) end(code int) {
	b.Helper()
	require.Equal(b, code, <-b.Code)
	b.ended()
}

// ended asserts what holds after the bridge's end.
func (b *testBridge) ended() {
	b.Helper()
	b.Close()
	for i, c := range b.codexes {
		assert.Equal(b, 1, c.closed, "child %d is closed exactly once", i+1)
	}
}
