package stdio

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// driver is a client: it writes raw bytes to a server and sees what comes out.
// It is for use inside a synctest bubble.
type driver struct {
	t      *testing.T
	in     *io.PipeWriter
	out    *output
	cancel context.CancelFunc
	server *Server
	err    error
	ended  chan struct{}

	mu     sync.Mutex
	events []string
}

// drive starts a server with an open input.
func drive(t *testing.T, handler Handler, opts Options) *driver {
	d := &driver{t: t, out: newOutput(), ended: make(chan struct{})}
	opts.OnEvent = func(name string, fields ...slog.Attr) {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, f := range fields {
			if f.Key != "cwd" {
				name += " " + f.String()
			}
		}
		d.events = append(d.events, name)
	}
	in, w := io.Pipe()
	d.in = w
	ctx, cancel := context.WithCancel(t.Context())
	d.cancel = cancel
	d.server = NewServer(in, d.out, handler, opts)
	go func() {
		defer close(d.ended)
		d.err = d.server.Serve(ctx)
	}()
	t.Cleanup(cancel)
	return d
}

// send writes raw bytes and waits until the server has come to rest.
func (d *driver) send(raw string) {
	d.t.Helper()
	_, err := io.WriteString(d.in, raw)
	require.NoError(d.t, err)
	synctest.Wait()
}

// finish ends the input and returns everything written, and Serve's error.
func (d *driver) finish() (string, error) {
	d.t.Helper()
	require.NoError(d.t, d.in.Close())
	<-d.ended
	return d.out.String(), d.err
}

func (d *driver) seen() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.events...)
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

// output takes bytes unless it is blocked or broken.
type output struct {
	mu     sync.Mutex
	change *sync.Cond
	buf    strings.Builder
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

// Close makes a blocked write return, as closing a pipe does.
func (o *output) Close() error { o.set(false, io.ErrClosedPipe); return nil }

func (o *output) set(block bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.block, o.err = block, err
	o.change.Broadcast()
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// serve runs a server over a whole input and returns its messages in no
// particular order.
func serve(t *testing.T, in string, handler Handler, opts Options) ([]string, error) {
	t.Helper()
	var out output
	out.change = sync.NewCond(&out.mu)
	err := Serve(t.Context(), strings.NewReader(in), &out, handler, opts)
	return readAll(strings.NewReader(out.String()), ReaderOptions{}), err
}

func ok(id string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"method":"m"}}`, id)
}

func call(id string) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"m"}`, id) }

func parseError(data string) string {
	return `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error","data":"` + data + `"}}`
}

const invalid = `"error":{"code":-32600,"message":"Invalid Request: `
