package dockerbox

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/tunnel"
	"mcpagents/internal/sandbox/wire"
)

// fakeRuntime makes sandboxes whose init is played here: its only program is a
// browser that says what the test wants and answers on its control port.
type fakeRuntime struct {
	sandbox.Runtime
	says    string                 // on stderr, at the start; "" for nothing
	exits   bool                   // right after it said that
	answers func() (string, error) // the id at the control port
	refuse  error                  // of Start

	mu      sync.Mutex
	specs   []sandbox.Spec
	argv    [][]string
	started []*fakeInstance
}

func (r *fakeRuntime) Environ(sandbox.Spec) []string { return nil }

func (r *fakeRuntime) Start(_ context.Context, spec sandbox.Spec) (sandbox.Instance, error) {
	if r.refuse != nil {
		return nil, r.refuse
	}
	near, far := net.Pipe()
	i := &fakeInstance{Conn: near, far: far, runtime: r}
	r.mu.Lock()
	r.specs = append(r.specs, spec)
	r.started = append(r.started, i)
	i.id = fmt.Sprintf("box%d", len(r.started))
	r.mu.Unlock()
	i.init.Go(i.serve)
	return i, nil
}

type fakeInstance struct {
	net.Conn
	far     net.Conn
	id      string
	runtime *fakeRuntime
	init    sync.WaitGroup
}

func (i *fakeInstance) ID() string          { return i.id }
func (i *fakeInstance) Diagnostics() string { return "" }

func (i *fakeInstance) Destroy(context.Context) error {
	_ = i.Conn.Close()
	i.init.Wait()
	return nil
}

// serve plays init until the front end hangs up or says bye.
func (i *fakeInstance) serve() {
	conn := wire.NewConn(i.far, i.far)
	server := &http.Server{Handler: http.HandlerFunc(i.version)}
	ports := newPipeListener()
	serving := make(chan struct{})
	go func() { defer close(serving); _ = server.Serve(ports) }()
	tun := tunnel.New(conn, wire.FirstInit, ports.dial)
	defer func() {
		_ = server.Close()
		tun.Close()
		_ = i.far.Close()
		_ = conn.Close()
		<-serving
	}()
	for {
		f, err := conn.Next()
		if err != nil || f.Type == wire.TypeBye {
			return
		}
		switch {
		case tunnel.Carries(f):
			_ = tun.Handle(f)
		case f.Type == wire.TypeHello:
			_ = conn.SendJSON(wire.TypeHello, wire.Welcome{Version: wire.Version})
		case f.Type == wire.TypeListen:
			var l wire.Listen
			_ = wire.Unmarshal(f, &l)
			_ = conn.SendJSON(wire.TypeListening, wire.Listening{Port: l.Port})
		case f.Type == wire.TypeSpawn:
			i.spawn(conn, f)
		case f.Type == wire.TypeSignal:
			_ = conn.SendJSON(wire.TypeExit, wire.Exit{Reason: wire.ReasonSignal, Signal: 15, Code: 143})
		}
	}
}

func (i *fakeInstance) spawn(conn *wire.Conn, f wire.Frame) {
	var sp wire.Spawn
	_ = wire.Unmarshal(f, &sp)
	i.runtime.mu.Lock()
	i.runtime.argv = append(i.runtime.argv, sp.Argv)
	i.runtime.mu.Unlock()
	_ = conn.SendJSON(wire.TypeStarted, wire.Started{PID: 7})
	browser := sp.Argv[0] == program
	if browser && i.runtime.says != "" {
		_ = conn.Send(wire.Frame{Type: wire.TypeData, Stream: wire.Stderr, Payload: []byte(i.runtime.says + "\n")})
	}
	if !browser || i.runtime.exits {
		_ = conn.SendJSON(wire.TypeExit, wire.Exit{Reason: wire.ReasonExit, Code: map[bool]int{true: 139}[browser]})
	}
}

// version answers /json/version.
func (i *fakeInstance) version(w http.ResponseWriter, r *http.Request) {
	id, err := i.runtime.answers()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintf(w, `{"webSocketDebuggerUrl":"ws://%s/devtools/browser/%s"}`, r.Host, id)
}

// pipeListener hands pipes to a server.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *pipeListener) dial(ctx context.Context, _ int) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.done:
		return nil, io.EOF
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

const saysOne = "noise\nDevTools listening on ws://127.0.0.1:9222/devtools/browser/one"

// fakeBox is a Box of the fake runtime.
func fakeBox(t *testing.T, rt *fakeRuntime) *Box {
	t.Helper()
	if rt.answers == nil {
		rt.answers = func() (string, error) { return "one", nil }
	}
	b := New(Config{Runtime: rt, ToolImage: "tools", BrowserImage: "browser", Network: "none", Dir: "/w",
		Workspace: sandbox.Spec{Mounts: []sandbox.Mount{{Path: "/w"}}, WorkDir: "/w"}, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { require.NoError(t, b.Close(context.Background())) })
	return b
}

// commands are the first words of what was started so far.
func (r *fakeRuntime) commands() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, argv := range r.argv {
		names = append(names, argv[0][strings.LastIndex(argv[0], "/")+1:])
	}
	return strings.Join(names, " ")
}
