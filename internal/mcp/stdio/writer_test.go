package stdio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/mcp"
)

func TestEncodeResponse(t *testing.T) {
	id := mcp.ParseID([]byte("1"))
	for _, c := range []struct {
		resp mcp.Response
		want string
	}{
		{mcp.Response{Result: map[string]any{}}, `"result":{}`},
		{mcp.Response{}, `"result":null`},
		{mcp.Response{Result: "<a href='x'>&</a>\nü"}, `"result":"<a href='x'>&</a>\nü"`},
		{mcp.Response{Error: &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "Method not found"}}, `"error":{"code":-32601,"message":"Method not found"}`},
		{mcp.Response{Error: &mcp.Error{Code: mcp.CodeAborted, Message: "m", Data: ""}}, `"error":{"code":-32001,"message":"m","data":""}`},
		{mcp.Response{Error: &mcp.Error{Code: mcp.CodeInternal, Message: "<", Data: map[string]int{"a": 1}}}, `"error":{"code":-32603,"message":"<","data":{"a":1}}`},
	} {
		got, err := mcp.EncodeResponse(id, &c.resp)
		require.NoError(t, err)
		assert.Equal(t, `{"jsonrpc":"2.0","id":1,`+c.want+`}`, string(got))
	}
	_, err := mcp.EncodeResponse(id, &mcp.Response{Result: math.NaN()})
	require.ErrorContains(t, err, "encode message")
}

func TestEncodeNotification(t *testing.T) {
	got, err := mcp.EncodeNotification("notifications/x", nil)
	require.NoError(t, err)
	assert.Equal(t, `{"jsonrpc":"2.0","method":"notifications/x"}`, string(got))
	got, err = mcp.EncodeNotification("n", map[string]string{"a": "<"})
	require.NoError(t, err)
	assert.Equal(t, `{"jsonrpc":"2.0","method":"n","params":{"a":"<"}}`, string(got))
	_, err = mcp.EncodeNotification("n", math.Inf(1))
	require.Error(t, err)
}

func TestErrorCodes(t *testing.T) {
	assert.Equal(t, []int{-32700, -32600, -32601, -32602, -32603, -32001},
		[]int{mcp.CodeParse, mcp.CodeInvalidRequest, mcp.CodeMethodNotFound, mcp.CodeInvalidParams, mcp.CodeInternal, mcp.CodeAborted})
}

func TestWriterForms(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out)
	require.NoError(t, w.Send(mcp.Line, []byte(`{"a":"é"}`)))
	require.NoError(t, w.Send(mcp.Framed, []byte(`{"a":"é"}`)))
	require.NoError(t, w.Send(mcp.Line, []byte("{\n\"a\":1\r\n}")))
	require.NoError(t, w.Send(mcp.Framed, []byte("{\n}")))
	require.NoError(t, w.Forward(mcp.Message{Raw: []byte("x\r"), Terminated: true}))
	require.NoError(t, w.Stream(func(out io.Writer) error { _, err := io.WriteString(out, "streamed\n"); return err }))
	require.NoError(t, w.Forward(mcp.Message{Raw: []byte("tail")}))
	assert.Equal(t, "{\"a\":\"é\"}\n"+"Content-Length: 10\r\n\r\n{\"a\":\"é\"}"+"{ \"a\":1\r }\n"+
		"Content-Length: 3\r\n\r\n{\n}"+"x\r\nstreamed\ntail", out.String())
}

func TestWriterLeavesTheBodyAlone(t *testing.T) {
	body := []byte("{\n}")
	require.NoError(t, NewWriter(io.Discard).Send(mcp.Line, body))
	assert.Equal(t, "{\n}", string(body))
}

// Messages of many goroutines arrive whole, in both framings and both sides of
// the size below which a message leaves in one write.
func TestWriterNeverMixes(t *testing.T) {
	pr, pw := io.Pipe()
	w := NewWriter(pw)
	var wg sync.WaitGroup
	want := map[string]int{}
	for g := range 8 {
		body := strings.Repeat(fmt.Sprint(g), []int{10, copyBelow + 1}[g%2])
		mode := mcp.Mode(g / 2 % 2)
		want[mode.String()+" "+body] = 20
		wg.Go(func() {
			for range 20 {
				assert.NoError(t, w.Send(mode, []byte(body)))
			}
		})
	}
	go func() { wg.Wait(); pw.Close() }()
	got := map[string]int{}
	for _, m := range readAll(pr, ReaderOptions{}) {
		got[m]++
	}
	assert.True(t, assert.ObjectsAreEqual(want, got), "%d kinds of message", len(got))
}

type failingWriter struct {
	err   error
	calls int
}

func (f *failingWriter) Write([]byte) (int, error) { f.calls++; return 0, f.err }

func TestWriterClosedOutput(t *testing.T) {
	closed, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	pr, pipe, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, pr.Close())
	defer pipe.Close()
	memReader, mem := io.Pipe()
	memReader.Close()
	conn, peer := net.Pipe()
	peer.Close()
	conn.Close()
	outs := map[string]io.Writer{"closed file": closed, "broken pipe": pipe, "io.Pipe": mem, "closed connection": conn}
	for i, kin := range brokenPipe {
		outs[fmt.Sprint("kin ", i)] = &failingWriter{err: &os.PathError{Op: "write", Path: "x", Err: kin}}
	}
	for name, out := range outs {
		w := NewWriter(out)
		require.ErrorIs(t, w.Send(mcp.Line, []byte("1")), ErrOutputClosed, name)
		require.ErrorIs(t, w.Send(mcp.Framed, bytes.Repeat([]byte("1"), copyBelow+1)), ErrOutputClosed, name)
	}
}

func TestWriterOtherErrors(t *testing.T) {
	full := errors.New("no space")
	out := &failingWriter{err: full}
	w := NewWriter(out)
	assert.Equal(t, full, w.Send(mcp.Line, []byte("1")), "as it is")
	assert.Equal(t, full, w.Send(mcp.Line, bytes.Repeat([]byte("1"), copyBelow+1)))
	assert.Equal(t, 1, out.calls, "never tried again")

	w = NewWriter(&failingWriter{err: full})
	assert.Equal(t, full, w.Send(mcp.Framed, bytes.Repeat([]byte("1"), copyBelow+1)))
}
