package stdio

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"mcpagents/internal/mcp"
)

// roleEnv makes the test binary play a program instead of running tests.
const roleEnv = "STDIO_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "":
		goleak.VerifyTestMain(m)
	case "exit":
		os.Exit(0)
	case "server-caught":
		CatchBrokenPipe()
		fallthrough
	case "server":
		if err := Serve(context.Background(), os.Stdin, os.Stdout, echo, Options{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// echo answers every message with its method.
func echo(_ context.Context, req *Request) (*mcp.Response, error) {
	if e := req.Check(); e != nil {
		return &mcp.Response{Error: e}, nil
	}
	return &mcp.Response{Result: map[string]string{"method": req.Method}}, nil
}

func frame(body string) string {
	return "Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

// readAll reads src to its end and gives each outcome one text: "line <raw>",
// "framed <raw>", "open <raw>" for an unterminated line, or the error.
func readAll(src io.Reader, opts ReaderOptions) []string {
	r := NewReader(src, opts)
	got := []string{}
	for {
		m, err := r.Next()
		switch bad, ok := err.(*mcp.MessageError); {
		case ok:
			got = append(got, bad.Mode.String()+" error: "+bad.Error())
		case err == io.EOF:
			return got
		case err != nil:
			return append(got, "failed: "+err.Error())
		case !m.Terminated:
			got = append(got, "open "+string(m.Raw))
		default:
			got = append(got, m.Mode.String()+" "+string(m.Raw))
		}
	}
}

// chunks gives a reader that returns data in the given pieces, cyclically.
func chunks(data []byte, sizes []int) io.Reader {
	return &chunkReader{data: bytes.NewReader(data), sizes: sizes}
}

type chunkReader struct {
	data  *bytes.Reader
	sizes []int
	next  int
}

func (c *chunkReader) Read(p []byte) (int, error) {
	n := min(len(p), c.sizes[c.next%len(c.sizes)])
	c.next++
	return c.data.Read(p[:n])
}
