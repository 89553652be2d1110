package stdio

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/mcp"
)

// ids are written in ways that decoding would change.
var ids = []string{
	`0`, `-0`, `-1`, `1`, `1.0`, `1.5`, `1e2`, `100`, `1e20`, `9007199254740992`, `9007199254740993`, `18446744073709551616`,
	`""`, `"1"`, `"number:1"`, `"é"`, `" a "`, `"a\"}{\\"`, `"\ud800"`, `"\ud801"`, "\"\xff\"", `"` + strings.Repeat("x", 200) + `"`,
}

func nested(depth int) string {
	return `{"params":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `,"id":"deep","method":"m"}`
}

func TestServeIDs(t *testing.T) {
	for _, id := range ids {
		got, err := serve(t, call(id)+"\n"+frame(call(id)), echo, Options{})
		require.NoError(t, err)
		assert.ElementsMatch(t, []string{"line " + ok(id), "framed " + ok(id)}, got)
	}
	t.Run("null is kept, other types are answered as null", func(t *testing.T) {
		any := func(context.Context, *Request) (*mcp.Response, error) { return &mcp.Response{Result: 1}, nil }
		for _, id := range []string{"null", "{}", "[]", "true"} {
			got, err := serve(t, call(id)+"\n", any, Options{})
			require.NoError(t, err)
			assert.Equal(t, []string{`line {"jsonrpc":"2.0","id":null,"result":1}`}, got)
		}
	})
	t.Run("array, scalar and null are a request without method and id", func(t *testing.T) {
		for _, in := range []string{"[]", "[1]", "5", `"x"`, "null", "true"} {
			got, err := serve(t, in+"\n", func(_ context.Context, req *Request) (*mcp.Response, error) {
				assert.Equal(t, mcp.Envelope{}, req.Envelope, in)
				return &mcp.Response{Error: req.Check()}, nil
			}, Options{})
			require.NoError(t, err)
			assert.Equal(t, []string{`line {"jsonrpc":"2.0","id":null,` + invalid + `not an object with a method"}}`}, got)
		}
	})
	t.Run("null is told from absent", func(t *testing.T) {
		ran := 0
		strict := func(ctx context.Context, req *Request) (*mcp.Response, error) {
			if e := req.Check(); e != nil {
				return &mcp.Response{Error: e}, nil
			}
			ran++
			return &mcp.Response{Result: "dropped"}, nil
		}
		got, err := serve(t, call("null")+"\n", strict, Options{})
		require.NoError(t, err)
		assert.Equal(t, []string{`line {"jsonrpc":"2.0","id":null,` + invalid + `id must be a string or a number"}}`}, got)
		assert.Zero(t, ran)
		got, err = serve(t, `{"jsonrpc":"2.0","method":"m"}`+"\n", strict, Options{})
		require.NoError(t, err)
		assert.Empty(t, got, "a notification is never answered")
		assert.Equal(t, 1, ran)
	})
}

func TestServeMessagesRead(t *testing.T) {
	var got []string
	handler := func(_ context.Context, req *Request) (*mcp.Response, error) { return nil, nil }
	_, err := serve(t, call("1")+"\r\n"+frame(call("2"))+"{\n"+frame("{"), handler, Options{
		Preempt: func(r *Request) { got = append(got, r.Message.Mode.String()+" "+string(r.Message.Raw)) },
		OnParseError: func(e *mcp.MessageError, answer *mcp.Error) *mcp.Error {
			assert.ErrorIs(t, e, mcp.ErrSyntax)
			got = append(got, e.Mode.String()+" error")
			return nil
		},
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"line " + call("1") + "\r", "framed " + call("2"), "line error", "framed error"}, got)
}

func TestServeDetection(t *testing.T) {
	text := `{"jsonrpc":"2.0","id":3,"method":"m","params":{"text":"Content-Length: 5"}}`
	in := "CONTENT-LENGTH: " + frame(call("1"))[16:] + call("2") + "\n" + text + "\n" + frame(call("4"))
	got, err := serve(t, in, echo, Options{})
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"framed " + ok("1"), "line " + ok("2"), "line " + ok("3"), "framed " + ok("4")}, got)
}

func TestServeLineMode(t *testing.T) {
	got, err := serve(t, "\n\r\n  \n"+call("1")+"\r\n\n"+call("2"), echo, Options{})
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"line " + ok("1"), "line " + ok("2")}, got)
	got, err = serve(t, call("1")+"\n \t", echo, Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"line " + ok("1")}, got, "a blank rest is no message")
}

func TestServeFramedMode(t *testing.T) {
	for _, header := range []string{"Content-Length: abc", "Content-Length: -1", "Content-Length: 10995116277760", "Content-Type: x"} {
		got, err := serve(t, header+"\r\n\r\n"+frame(call("1")), echo, Options{})
		require.NoError(t, err)
		require.Len(t, got, 2, "one error and the next message")
		slices.Sort(got)
		assert.Contains(t, got[0], `framed {"jsonrpc":"2.0","id":1,"result"`)
		assert.Contains(t, got[1], `framed {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error","data":"bad frame: `)
	}
}

func TestServeChunks(t *testing.T) {
	body := `{"jsonrpc":"2.0","id":"é😀","method":"m"}`
	in := frame(body) + body + "\r\n" + frame(body)
	want := []string{"framed " + ok(`"é😀"`), "line " + ok(`"é😀"`), "framed " + ok(`"é😀"`)}
	for _, wrap := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader} {
		var out output
		require.NoError(t, Serve(t.Context(), wrap(strings.NewReader(in)), &out, echo, Options{}))
		assert.ElementsMatch(t, want, readAll(strings.NewReader(out.String()), ReaderOptions{}))
	}
}

func TestServeResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := drive(t, func(_ context.Context, req *Request) (*mcp.Response, error) {
			switch req.Method {
			case "data":
				return &mcp.Response{Error: &mcp.Error{Code: mcp.CodeInvalidParams, Message: "bad", Data: []int{1}}}, nil
			case "plain":
				return &mcp.Response{Error: &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "Method not found"}}, nil
			}
			return &mcp.Response{Result: "é<"}, nil
		}, Options{})
		d.send(call("1") + "\n")
		d.send(frame(call("2")))
		d.send(`{"id":3,"method":"data"}` + "\n")
		d.send(`{"id":4,"method":"plain"}` + "\n")
		out, err := d.finish()
		require.NoError(t, err)
		assert.Equal(t, `{"jsonrpc":"2.0","id":1,"result":"é<"}`+"\n"+
			"Content-Length: 39\r\n\r\n"+`{"jsonrpc":"2.0","id":2,"result":"é<"}`+
			`{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"bad","data":[1]}}`+"\n"+
			`{"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"Method not found"}}`+"\n", out)
	})
}

func TestServeParseError(t *testing.T) {
	const junk, why = "{junk\n", "invalid JSON: invalid character 'j' looking for beginning of object key string"
	got, err := serve(t, junk, echo, Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"line " + parseError(why)}, got)
	got, err = serve(t, frame("{junk"), echo, Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"framed " + parseError(why)}, got)

	got, err = serve(t, junk+call("1")+"\n", echo, Options{OnParseError: func(e *mcp.MessageError, answer *mcp.Error) *mcp.Error {
		assert.Equal(t, &mcp.Error{Code: mcp.CodeParse, Message: "Parse error", Data: why}, answer)
		return &mcp.Error{Code: 1, Message: "ours"}
	}})
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{`line {"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"ours"}}`, "line " + ok("1")}, got)

	got, err = serve(t, junk+call("1")+"\n", echo, Options{OnParseError: func(*mcp.MessageError, *mcp.Error) *mcp.Error { return nil }})
	require.NoError(t, err)
	assert.Equal(t, []string{"line " + ok("1")}, got)

	_, err = serve(t, junk, echo, Options{OnParseError: func(*mcp.MessageError, *mcp.Error) *mcp.Error { return &mcp.Error{Data: math.NaN()} }})
	require.ErrorContains(t, err, "encode message")
}

func TestServeRefusals(t *testing.T) {
	fill := strings.Repeat("x", 100_000)
	opts := Options{MaxMessage: 90_000}
	const long, deep = "message too long: over 90000 bytes", "message nested too deeply: over 10000 levels"
	for _, c := range []struct{ name, in, want string }{
		{"long", `{"id":7,"method":"m","params":"` + fill + `"}`, `{"jsonrpc":"2.0","id":7,` + invalid + long + `"}}`},
		{"long, id unseen", `{"method":"m","params":"` + fill + `","id":7}`, `{"jsonrpc":"2.0","id":null,` + invalid + long + `"}}`},
		{"long response", `{"id":7,"result":"` + fill + `"}`, ""},
		{"deep", nested(mcp.MaxDepth + 1), `{"jsonrpc":"2.0","id":"deep",` + invalid + deep + `"}}`},
		{"deep array", strings.Repeat("[", 80_000), `{"jsonrpc":"2.0","id":null,` + invalid + deep + `"}}`},
		{"deep notification", strings.Replace(nested(mcp.MaxDepth+1), `"id"`, `"no"`, 1), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := []string{"line " + ok("1")}
			if c.want != "" {
				want = append(want, "line "+c.want)
			}
			got, err := serve(t, c.in+"\n"+call("1")+"\n", echo, opts)
			require.NoError(t, err)
			assert.ElementsMatch(t, want, got)
		})
	}
}

func TestServeSizes(t *testing.T) {
	for _, n := range []int{65_535, 65_536, 1_048_577, 20_000_000} {
		got, err := serve(t, sized(n)+"\n"+call("1")+"\n", echo, Options{})
		require.NoError(t, err)
		want := "line " + ok("7")
		if n > mcp.DefaultMaxMessage {
			want = `line {"jsonrpc":"2.0","id":7,` + invalid + `message too long: over 16777216 bytes"}}`
		}
		assert.ElementsMatch(t, []string{want, "line " + ok("1")}, got, "%d bytes", n)
	}
}

func TestServeHandler(t *testing.T) {
	fault := errors.New("boom")
	handler := func(_ context.Context, req *Request) (*mcp.Response, error) {
		switch req.Method {
		case "nothing":
			return nil, nil
		case "fault":
			return nil, fault
		case "number":
			return &mcp.Response{Result: math.NaN()}, nil
		}
		return echo(t.Context(), req)
	}
	request := func(method string) string { return `{"id":9,"method":"` + method + `"}` + "\n" }

	t.Run("may answer nothing", func(t *testing.T) {
		got, err := serve(t, request("nothing"), handler, Options{})
		require.NoError(t, err)
		assert.Empty(t, got)
	})
	t.Run("error without a hook ends the loop", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := drive(t, handler, Options{})
			d.send(request("fault"))
			<-d.ended
			assert.Equal(t, fault, d.err)
		})
	})
	t.Run("error goes to the hook and the loop goes on", func(t *testing.T) {
		var hooked []error
		got, err := serve(t, request("fault")+call("1")+"\n", handler, Options{OnError: func(_ *Request, err error) *mcp.Response {
			hooked = append(hooked, err)
			return nil
		}})
		require.NoError(t, err)
		assert.Equal(t, []string{"line " + ok("1")}, got)
		assert.Equal(t, []error{fault}, hooked)
	})
	t.Run("the hook may answer", func(t *testing.T) {
		internal := &mcp.Response{Error: &mcp.Error{Code: mcp.CodeInternal, Message: "Internal error"}}
		got, err := serve(t, request("fault")+request("number"), handler, Options{OnError: func(*Request, error) *mcp.Response { return internal }})
		require.NoError(t, err)
		want := `line {"jsonrpc":"2.0","id":9,"error":{"code":-32603,"message":"Internal error"}}`
		assert.Equal(t, []string{want, want}, got)
	})
	t.Run("an answer that cannot be encoded is returned", func(t *testing.T) {
		_, err := serve(t, request("number"), handler, Options{})
		require.ErrorContains(t, err, "NaN")
		_, err = serve(t, request("number"), handler, Options{OnError: func(*Request, error) *mcp.Response {
			return &mcp.Response{Result: math.NaN()}
		}})
		require.ErrorContains(t, err, "NaN", "also from the hook")
	})
}

func TestServeModeOfOurOwnMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := drive(t, echo, Options{})
		synctest.Wait()
		require.NoError(t, d.server.Notify("n", nil))
		d.send(frame(call("1")))
		require.NoError(t, d.server.Notify("n", nil))
		d.send("{bad\n")
		require.NoError(t, d.server.Notify("n", []int{1}))
		require.Error(t, d.server.Notify("n", math.NaN()))
		out, err := d.finish()
		require.NoError(t, err)
		got := readAll(strings.NewReader(out), ReaderOptions{})
		note := `{"jsonrpc":"2.0","method":"n"}`
		require.Len(t, got, 5)
		assert.Equal(t, []string{"line " + note, "framed " + ok("1"), "framed " + note}, got[:3])
		assert.Equal(t, `line {"jsonrpc":"2.0","method":"n","params":[1]}`, got[4])
	})
}
