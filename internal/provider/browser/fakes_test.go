package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"mcpagents/internal/provider/browser/lease"
	"mcpagents/internal/sandbox/wire"
)

// fakeTool is a chrome-devtools-mcp in memory. It answers the handshake and
// every call but those of "slow", and asks nothing.
type fakeTool struct {
	args   []string
	mute   []string // what it does not answer: parts of lines
	answer map[string]string

	mu       sync.Mutex
	received bytes.Buffer
	stdout   io.Writer
	stderr   io.Writer
	end      func(wire.Exit)
	closed   int
	playing  sync.WaitGroup
}

func (f *fakeTool) start() *lease.Child {
	stdinR, stdinW := io.Pipe()
	stdoutR, stdoutW := io.Pipe()
	stderrR, stderrW := io.Pipe()
	exit := make(chan wire.Exit, 1)
	var once sync.Once
	f.stdout, f.stderr = stdoutW, stderrW
	f.end = func(e wire.Exit) {
		once.Do(func() {
			stdoutW.Close()
			stderrW.Close()
			exit <- e
		})
	}
	f.playing.Go(func() { f.play(stdinR) })
	return &lease.Child{Stdin: stdinW, Stdout: stdoutR, Stderr: stderrR, Source: "explicit",
		Wait: func(ctx context.Context) (wire.Exit, error) {
			select {
			case e := <-exit:
				return e, nil
			case <-ctx.Done():
				return wire.Exit{}, ctx.Err()
			}
		},
		Close: func(context.Context) error {
			f.closed++
			for _, c := range []io.Closer{stdinR, stdoutR, stderrR, stdoutW, stderrW} {
				c.Close()
			}
			f.playing.Wait()
			return nil
		}}
}

func (f *fakeTool) play(stdin io.Reader) {
	lines := bufio.NewReader(stdin)
	for {
		line, err := lines.ReadString('\n')
		f.mu.Lock()
		f.received.WriteString(line)
		f.mu.Unlock()
		if err != nil {
			f.end(wire.Exit{Reason: wire.ReasonExit})
			return
		}
		if out := f.reply(line); out != "" {
			io.WriteString(f.stdout, out+"\n")
		}
	}
}

func (f *fakeTool) reply(line string) string {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Name string }
	}
	_ = json.Unmarshal([]byte(line), &m)
	for _, part := range f.mute {
		if strings.Contains(line, part) {
			return ""
		}
	}
	out := ""
	switch {
	case m.ID == nil || m.Method == "":
	case f.answer[m.Method] != "":
		out = f.answer[m.Method]
	case m.Method == "initialize":
		out = nativeInit
	case m.Method == "tools/list":
		out = nativeTools
	case m.Method == "tools/call" && m.Params.Name != "slow":
		out = nativeOK
	}
	return strings.ReplaceAll(out, "$id", string(m.ID))
}

func (f *fakeTool) got() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.received.String()
}

// fakeLessor lends browsers in memory and notes what it is asked for.
type fakeLessor struct {
	mu       sync.Mutex
	log      []string
	acquires int

	acquire  func(n int, req lease.Request) (lease.Record, error) // nil lends one
	wait     map[string]time.Duration                             // of acquire, identity, status, release
	identity string                                               // of the browser that answers now; empty: as lent
	silent   bool                                                 // no browser answers
	state    lease.State
	refusal  error // of a release
}

func (f *fakeLessor) note(ctx context.Context, op, text string) error {
	f.mu.Lock()
	f.log = append(f.log, strings.TrimSpace(op+" "+text))
	wait := f.wait[op]
	f.mu.Unlock()
	if wait == 0 {
		return nil
	}
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fakeLessor) Acquire(ctx context.Context, req lease.Request) (lease.Record, error) {
	f.mu.Lock()
	f.acquires++
	n := f.acquires
	acquire := f.acquire
	f.mu.Unlock()
	if err := f.note(ctx, "acquire", fmt.Sprint(req.LocalPort)); err != nil {
		return lease.Record{}, &lease.ProvisioningError{Text: "the browser lease helper was ended", Err: err}
	}
	if acquire != nil {
		if rec, err := acquire(n, req); err != nil {
			return rec, err
		}
	}
	return lease.Record{Session: req.Session, Generation: fmt.Sprintf("g%d", n), BrowserURL: browserURL(req.LocalPort)}, nil
}

func (f *fakeLessor) Status(ctx context.Context, rec lease.Record) (lease.State, error) {
	if err := f.note(ctx, "status", rec.Generation); err != nil {
		return lease.Unknown, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state == lease.Unknown {
		return f.state, errors.New("exit 70")
	}
	return f.state, nil
}

func (f *fakeLessor) Release(ctx context.Context, rec lease.Record, reason lease.Reason) error {
	_ = f.note(ctx, "release", rec.Generation+" "+string(reason))
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refusal
}

func (f *fakeLessor) Identity(ctx context.Context, rec lease.Record) (string, error) {
	if err := f.note(ctx, "identity", rec.Generation); err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.silent:
		return "", errors.New("connection refused")
	case f.identity != "":
		return f.identity, nil
	}
	return "browser of " + rec.Generation, nil
}

// set changes what happens from now on.
func (f *fakeLessor) set(change func(*fakeLessor)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// becomes makes another browser answer.
func (f *fakeLessor) becomes(id string) { f.set(func(f *fakeLessor) { f.identity = id }) }

// slow makes one kind of question take its time.
func (f *fakeLessor) slow(op string, d time.Duration) { f.set(func(f *fakeLessor) { f.wait[op] = d }) }

// count is how often a browser was asked for.
func (f *fakeLessor) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.acquires
}

// asked returns what was asked since the last call.
func (f *fakeLessor) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	log := f.log
	f.log = nil
	return log
}
