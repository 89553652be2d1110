package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/mcp"
	"mcpagents/internal/sandbox/wire"
	"mcpagents/internal/testkit/proxyclient"
)

// plain is the smallest policy: any MCP server behind the proxy.
type plain struct {
	Defaults[*Request]
	start func() (Started, error)
}

func (p *plain) Request(base Request, m mcp.Message, _ mcp.Envelope) {
	r := &base
	p.Accept(r)
	p.Forward(Pending[*Request]{Message: m, Request: r})
}

func (p *plain) Launch(context.Context) (Started, error) { return p.start() }

// fakeServer is a child in memory, for which the test speaks.
type fakeServer struct {
	stdout *io.PipeWriter
	stderr *io.PipeWriter
	exit   chan wire.Exit

	mu  sync.Mutex // of got
	got bytes.Buffer
	eof bool // its input has ended
}

func (f *fakeServer) process() Process {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	errR, errW := io.Pipe()
	f.stdout, f.stderr, f.exit = outW, errW, make(chan wire.Exit, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 64<<10)
		for {
			n, err := inR.Read(buf)
			f.mu.Lock()
			f.got.Write(buf[:n])
			f.eof = f.eof || errors.Is(err, io.EOF)
			f.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return Process{Stdin: inW, Stdout: outR, Stderr: errR,
		Wait: func(ctx context.Context) (wire.Exit, error) {
			select {
			case e := <-f.exit:
				return e, nil
			case <-ctx.Done():
				return wire.Exit{}, ctx.Err()
			}
		},
		Close: func(context.Context) error {
			for _, c := range []io.Closer{inR, outR, errR, outW, errW} {
				_ = c.Close()
			}
			<-read
			return nil
		}}
}

// takes returns what the child got since the last call.
func (f *fakeServer) takes() string {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	got := f.got.String()
	f.got.Reset()
	return got
}

func (f *fakeServer) says(text string) {
	_, _ = io.WriteString(f.stdout, text)
	synctest.Wait()
}

func (f *fakeServer) ends(code int) {
	_, _ = f.stdout.Close(), f.stderr.Close()
	f.exit <- wire.Exit{Code: code}
	synctest.Wait()
}

// bench is a session of the plain policy, its client and its children.
type bench struct {
	*proxyclient.Client
	policy   *plain
	children []*fakeServer
	failures int           // launches that fail from now on
	slow     time.Duration // of a launch
}

// startSession runs a session in a synctest bubble, after set has changed it.
func startSession(t *testing.T, cfg Config, set func(*bench)) *bench {
	b := &bench{policy: &plain{}}
	cfg.Name, cfg.Label, cfg.Version = "server", "plain", "1.2.3"
	cfg.Reserved = []string{"ours/"}
	cfg.ReservedAnswer = &mcp.Response{Error: &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "reserved"}}
	cfg.PrivateID = func(what string, number int) string { return "ours/" + what + "/" + string(rune('0'+number)) }
	if cfg.FlushStall == 0 {
		cfg.FlushStall = time.Minute
	}
	if set != nil {
		set(b)
	}
	b.policy.start = func() (Started, error) {
		time.Sleep(b.slow) // of the bubble's clock
		if b.failures > 0 {
			b.failures--
			return Started{}, errors.New("no engine")
		}
		f := &fakeServer{}
		b.children = append(b.children, f)
		return Started{Process: f.process(), ReadStderr: func(r io.Reader, yield func([]byte) bool) {
			text, _ := io.ReadAll(r)
			yield(text)
		}}, nil
	}
	b.Client = proxyclient.Start(t, func(ctx context.Context, log *slog.Logger, in io.Reader, out io.Writer) int {
		cfg.Log = log
		b.policy.Session = NewSession(cfg, b.policy)
		return b.policy.Session.Run(ctx, in, out).Code
	})
	b.Read()
	synctest.Wait()
	return b
}

// end waits for the session's end and asserts its exit status.
func (b *bench) end(code int) {
	b.Helper()
	require.Equal(b, code, <-b.Code)
	b.Close()
}

// child is the newest child.
func (b *bench) child() *fakeServer { return b.children[len(b.children)-1] }

// loop runs call in the event loop.
func (b *bench) loop(call func()) {
	b.policy.work <- func() {
		b.policy.working++ // it was not counted
		call()
	}
	synctest.Wait()
}

// pass lets time pass on the bubble's clock, and what is due then happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
