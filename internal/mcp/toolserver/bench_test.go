package toolserver

import (
	"bufio"
	"context"
	"io"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// client is one server and the ends of its pipes.
type client struct {
	in      *io.PipeWriter
	out     *bufio.Reader
	serving sync.WaitGroup
}

func connect(tb testing.TB) *client {
	server, err := New(Config{Provider: "test", Tools: []Tool{PingTool()}, Log: plainLog(io.Discard, 0)})
	require.NoError(tb, err)
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	c := &client{in: toServer, out: bufio.NewReaderSize(fromServer, 1024)}
	c.serving.Go(func() {
		if err := server.Serve(context.Background(), in, out); err != nil {
			tb.Error(err)
		}
	})
	return c
}

func (c *client) close() {
	c.in.Close()
	c.serving.Wait()
}

func (c *client) ask(tb testing.TB, message []byte) {
	_, err := c.in.Write(message)
	if err == nil {
		_, err = c.out.ReadSlice('\n')
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkPing is a round trip of the method; BenchmarkPingTool one of the tool.
func BenchmarkPing(b *testing.B)     { benchmarkAsk(b, `{"jsonrpc":"2.0","id":1,"method":"ping"}`) }
func BenchmarkPingTool(b *testing.B) { benchmarkAsk(b, callLine("1", "ping", "{}")) }

func benchmarkAsk(b *testing.B, message string) {
	c := connect(b)
	defer c.close()
	line := []byte(message + "\n")
	for b.Loop() {
		c.ask(b, line)
	}
}

// BenchmarkIdleServer reports what a server that has answered once and waits
// holds, its goroutines' stacks and its read buffer included.
func BenchmarkIdleServer(b *testing.B) {
	const servers = 200
	before := memory()
	var idle []*client
	for range servers {
		c := connect(b)
		c.ask(b, []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n"))
		idle = append(idle, c)
	}
	held := float64(memory()-before) / servers
	for _, c := range idle {
		c.close()
	}
	for b.Loop() { // one measurement is enough
	}
	b.ReportMetric(held, "B/server")
	b.ReportMetric(0, "ns/op")
}

func memory() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
