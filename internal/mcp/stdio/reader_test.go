package stdio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mcpagents/internal/mcp"
)

var readerCases = []struct {
	name, in string
	want     []string
}{
	{"line", "{\"a\":1}\n", []string{`line {"a":1}`}},
	{"line keeps its CR", "{}\r\n", []string{"line {}\r"}},
	{"two in one chunk", "1\n2\n", []string{"line 1", "line 2"}},
	{"blank lines are skipped", "\n \t\r\n\r\n1\n\n", []string{"line 1"}},
	{"rest at the end is a message", "1\n2", []string{"line 1", "open 2"}},
	{"blank rest is none", "1\n \r", []string{"line 1"}},
	{"empty input", "", []string{}},
	{"text that only begins like a header", "Content-L", []string{"open Content-L"}},
	{"short line that begins like a header", "cont\n1\n", []string{"line cont", "line 1"}},
	{"header in a JSON text", `{"a":"Content-Length: 5"}` + "\n1\n", []string{`line {"a":"Content-Length: 5"}`, "line 1"}},
	{"header in a JSON text after a frame", frame("{}") + `{"a":"x\r\nContent-Length: 5\r\n\r\nhello"}` + "\n1\n",
		[]string{"framed {}", `line {"a":"x\r\nContent-Length: 5\r\n\r\nhello"}`, "line 1"}},

	{"frame", frame(`{"é":1}`), []string{`framed {"é":1}`}},
	{"two frames in one chunk", frame("1") + frame("2"), []string{"framed 1", "framed 2"}},
	{"frame of pretty JSON", frame("{\n}\n"), []string{"framed {\n}\n"}},
	{"empty frame", "Content-Length: 0\r\n\r\n1\n", []string{"framed ", "line 1"}},
	{"modes mixed", frame("1") + "2\n" + frame("3") + "4", []string{"framed 1", "line 2", "framed 3", "open 4"}},
	{"line feed behind a frame", frame("1") + "\n" + frame("2") + "\r\n3\n", []string{"framed 1", "framed 2", "line 3"}},
	{"blanks before a header", frame("1") + "  \t" + frame("2"), []string{"framed 1", "framed 2"}},
	{"lower case", "content-length: 2\r\n\r\n{}", []string{"framed {}"}},
	{"upper case, no space", "CONTENT-LENGTH:2\r\n\r\n{}", []string{"framed {}"}},
	{"type first", "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n\r\n{}", []string{"framed {}"}},
	{"type last", "Content-Length: 2\r\ncontent-type: x\r\nX-Other: y\r\n\r\n{}", []string{"framed {}"}},
	{"header ends in LF", "Content-Length: 2\n\n{}", []string{"framed {}"}},
	{"same length twice", "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", []string{"framed {}"}},

	{"stray body before a type header", "Content-Length: 1\r\n\r\n{}Content-Type: x\r\n" + frame("2"),
		[]string{"framed {", "line }Content-Type: x\r", "framed 2"}},
	{"length too short", "Content-Length: 1\r\n\r\n{}" + frame("{}") + frame("2"),
		[]string{"framed {", "framed error: bad frame: 1 bytes between the end of a frame and the next header", "framed {}", "framed 2"}},
	{"length too long", "Content-Length: 4\r\n\r\n{}" + frame("{}") + frame("3") + "4\n",
		[]string{"framed {}Co", "line ntent-Length: 2\r", "framed error: bad frame: 2 bytes between the end of a frame and the next header", "framed 3", "line 4"}},
	{"truncated body", "Content-Length: 9\r\n\r\n{}", []string{"framed error: bad frame: the input ended after 2 of 9 bytes"}},
	{"truncated header", "Content-Length: 9\r\n", []string{"framed error: bad frame: the input ended inside a header"}},
	{"header without line end", "Content-Length: 9", []string{"framed error: bad frame: the input ended inside a header"}},
	{"no blank line", "Content-Length: 2\r\n{}\n1\n",
		[]string{"framed error: bad frame: a body follows the header without a blank line", "line {}", "line 1"}},
	{"two lengths", "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
		[]string{"framed error: bad frame: two Content-Length fields, 2 and 3"}},
	{"line without colon", "Content-Length: 2\r\nhello\r\n\r\n{}", []string{"framed error: bad frame: header line without a colon"}},
	{"no length", "Content-Type: x\r\n\r\n{}" + frame("1"), []string{"framed error: bad frame: header without Content-Length", "framed 1"}},
	{"long header", "Content-Length: 2\r\n" + strings.Repeat("X: "+strings.Repeat("y", 997)+"\r\n", 9) + "\r\n{}" + frame("1"),
		[]string{"framed error: bad frame: header over 8192 bytes", "framed 1"}},
	{"long header line", "Content-Length: 2\r\nX: " + strings.Repeat("y", 200_000) + "\r\n\r\n{}" + frame("1"),
		[]string{"framed error: bad frame: header over 8192 bytes", "framed 1"}},
}

func TestReader(t *testing.T) {
	for _, c := range readerCases {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, readAll(strings.NewReader(c.in), ReaderOptions{}), "in one piece")
			assert.Equal(t, c.want, readAll(iotest.OneByteReader(strings.NewReader(c.in)), ReaderOptions{}), "byte by byte")
		})
	}
}

// A length that is no length costs one error; the body, if one follows, is
// recognised by the next header or the end of the input.
func TestReaderInvalidLength(t *testing.T) {
	for _, length := range []string{"abc", "", "-5", "+5", "5.0", "0x5", "1e3", "5, 5", "10995116277760", "99999999999999999999999"} {
		for rest, want := range map[string][]string{
			frame("2"):                 {"framed 2"},
			`{"a":"b"}` + frame("2"):   {"framed 2"},
			"1\n":                      {"line 1"},
			`{"a":"b"}`:                nil,
			"{\"a\":\"b\"}\n" + "2\n3": {`line {"a":"b"}`, "line 2", "open 3"},
		} {
			in := "Content-Length: " + length + "\r\n\r\n" + rest
			got := readAll(strings.NewReader(in), ReaderOptions{})
			require.NotEmpty(t, got, in)
			assert.Contains(t, got[0], "framed error: bad frame: Content-Length", in)
			assert.Equal(t, want, append([]string(nil), got[1:]...), in)
		}
	}
}

func TestReaderPassThrough(t *testing.T) {
	in := "\n \r\nContent-Length: 5\nnot json\r\n\xff\xfe\n\ntail\r"
	want := []string{"line ", "line  \r", "line Content-Length: 5", "line not json\r", "line \xff\xfe", "line ", "open tail\r"}
	assert.Equal(t, want, readAll(strings.NewReader(in), ReaderOptions{KeepBlank: true, LinesOnly: true}))

	var out bytes.Buffer
	r, w := NewReader(strings.NewReader(in), ReaderOptions{KeepBlank: true, LinesOnly: true}), NewWriter(&out)
	for m, err := r.Next(); err == nil; m, err = r.Next() {
		require.NoError(t, w.Forward(m))
	}
	assert.Equal(t, in, out.String(), "byte for byte")
}

func TestMessageBody(t *testing.T) {
	assert.Equal(t, "{}", string(mcp.Message{Raw: []byte("{}\r")}.Body()))
	assert.Equal(t, "{}\r", string(mcp.Message{Raw: []byte("{}\r"), Mode: mcp.Framed}.Body()))
	assert.Empty(t, mcp.Message{}.Body())
	assert.True(t, mcp.Message{Raw: []byte(" \t\r")}.Blank())
	assert.False(t, mcp.Message{Mode: mcp.Framed}.Blank())
}

// sized returns a request of exactly n bytes.
func sized(n int) string {
	const head, tail = `{"jsonrpc":"2.0","id":7,"method":"m","params":{"x":"`, `"}}`
	return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
}

func TestReaderSizes(t *testing.T) {
	for _, n := range []int{65_535, 65_536, 65_537, 1_048_577, mcp.DefaultMaxMessage} {
		body := sized(n)
		got := readAll(strings.NewReader(body+"\n"+frame(body)+"ping\n"), ReaderOptions{})
		require.Len(t, got, 3, n)
		assert.True(t, got[0] == "line "+body && got[1] == "framed "+body, "content of %d bytes", n)
		assert.Equal(t, "line ping", got[2])
	}
}

func TestReaderTooLong(t *testing.T) {
	for _, c := range []struct {
		name        string
		max, length int
	}{
		{"one above the default", 0, mcp.DefaultMaxMessage + 1},
		{"20 MB", 0, 20_000_000},
		{"small limit", 64, 65},
		{"small limit, over the prefix", 64, 100_000},
	} {
		body := sized(max(c.length, 65))
		for mode, in := range map[mcp.Mode]string{mcp.Line: body + "\nping\n", mcp.Framed: frame(body) + "ping\n"} {
			t.Run(c.name+" "+mode.String(), func(t *testing.T) {
				r := NewReader(strings.NewReader(in), ReaderOptions{MaxMessage: c.max})
				_, err := r.Next()
				var bad *mcp.MessageError
				require.ErrorAs(t, err, &bad)
				require.ErrorIs(t, err, mcp.ErrTooLong)
				assert.Equal(t, mode, bad.Mode)
				assert.Equal(t, body[:min(len(body), mcp.PrefixSize)], string(bad.Prefix))
				assert.Equal(t, "number:7", bad.Seen.ID.Key())
				m, err := r.Next()
				require.NoError(t, err)
				assert.Equal(t, "ping", string(m.Raw))
			})
		}
	}
}

func TestReaderTooLongAtTheEnd(t *testing.T) {
	opts := ReaderOptions{MaxMessage: 4}
	assert.Equal(t, []string{"line error: message too long: over 4 bytes"}, readAll(strings.NewReader("12345"), opts))
	assert.Equal(t, []string{"framed error: message too long: over 4 bytes"},
		readAll(strings.NewReader("Content-Length: 90000\r\n\r\n"+strings.Repeat("x", 80_000)), opts))
	assert.Equal(t, []string{"line error: message too long: over 4 bytes", "framed 1"},
		readAll(strings.NewReader("Content-Length: x\r\n\r\n12345\n"+frame("1")), opts)[1:])
}

func TestReaderCopyLong(t *testing.T) {
	long := strings.Repeat("0123456789", 20_000) + "\r"
	for in, wantTerminated := range map[string]bool{long + "\nping\n": true, long: false, frame(long) + "ping\n": true} {
		r := NewReader(strings.NewReader(in), ReaderOptions{MaxMessage: 100})
		_, err := r.Next()
		require.ErrorIs(t, err, mcp.ErrTooLong)
		var got bytes.Buffer
		terminated, err := r.CopyLong(&got)
		require.NoError(t, err)
		assert.Equal(t, wantTerminated, terminated)
		assert.True(t, got.String() == long, "the message as it came")
		_, err = r.CopyLong(&got)
		require.Error(t, err, "only once")
		m, err := r.Next()
		if strings.HasSuffix(in, "ping\n") {
			require.NoError(t, err)
			assert.Equal(t, "ping", string(m.Raw))
		} else {
			assert.Equal(t, io.EOF, err)
		}
	}
}

func TestReaderCopyLongFailures(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	failing := iotest.ErrReader(errors.New("disk full"))
	for _, in := range []string{long + "\nping\n", frame(long) + "ping\n"} {
		r := NewReader(strings.NewReader(in), ReaderOptions{MaxMessage: 100})
		_, err := r.Next()
		require.ErrorIs(t, err, mcp.ErrTooLong)
		pr, pw := io.Pipe()
		pr.Close()
		_, err = r.CopyLong(pw)
		require.ErrorIs(t, err, io.ErrClosedPipe)
		m, err := r.Next()
		require.NoError(t, err)
		assert.Equal(t, "ping", string(m.Raw), "the rest is skipped after a write error")

		r = NewReader(io.MultiReader(strings.NewReader(in[:150_000]), failing), ReaderOptions{MaxMessage: 100})
		_, err = r.Next()
		require.ErrorIs(t, err, mcp.ErrTooLong)
		_, err = r.Next()
		require.EqualError(t, err, "disk full")
	}
}

func TestReaderInputError(t *testing.T) {
	broken := errors.New("broken")
	for _, start := range []string{"", "1", "Content-L", "Content-Length: 2\r\n", frame("12345")[:24]} {
		in := io.MultiReader(strings.NewReader("0\n"+start), iotest.ErrReader(broken))
		assert.Equal(t, []string{"line 0", "failed: broken"}, readAll(in, ReaderOptions{}), "after %q", start)
	}
}

// A terminal gives data again after an end of file.
func TestReaderEndIsFinal(t *testing.T) {
	src := &twoEnds{parts: []string{"1\nCont", "2\n"}}
	assert.Equal(t, []string{"line 1", "open Cont"}, readAll(src, ReaderOptions{}))
}

type twoEnds struct{ parts []string }

func (e *twoEnds) Read(p []byte) (int, error) {
	if len(e.parts) == 0 {
		return 0, io.EOF
	}
	n := copy(p, e.parts[0])
	e.parts = e.parts[1:]
	return n, io.EOF
}

// A message over the limit takes memory of the order of the limit.
func TestReaderBoundedMemory(t *testing.T) {
	const limit, length = 1 << 20, 64 << 20
	for _, head := range []string{"", fmt.Sprintf("Content-Length: %d\r\n\r\n", length)} {
		in := io.MultiReader(strings.NewReader(head), io.LimitReader(repeat('x'), length), strings.NewReader("\nping\n"))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := readAll(in, ReaderOptions{MaxMessage: limit})
		runtime.ReadMemStats(&after)
		assert.Len(t, got, 2)
		assert.Equal(t, "line ping", got[len(got)-1])
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8*limit))
	}
}

type repeat byte

func (r repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}

// drawn is a message as bytes on the wire and as the reader reports it.
type drawn struct{ wire, want string }

func drawMessage(t *rapid.T) drawn {
	text := rapid.SampledFrom([]string{"", "é", "日本", "😀", `Content-Length: 5`, `\r\nContent-Length: 2\r\n\r\n`, `\"`, `\\`}).Draw(t, "text") +
		rapid.StringMatching(`[ -!#-\[\]-~é]{0,40}`).Draw(t, "more")
	body := `{"id":"` + text + `"}`
	n := len(body)
	switch rapid.IntRange(0, 6).Draw(t, "form") {
	case 0, 1:
		return drawn{body + "\n", "line " + body}
	case 2:
		return drawn{body + "\r\n", "line " + body + "\r"}
	case 3:
		return drawn{frame(body), "framed " + body}
	case 4:
		return drawn{fmt.Sprintf("content-type: x; y=z\r\nCONTENT-length:%d\r\n\r\n%s", n, body), "framed " + body}
	case 5:
		return drawn{fmt.Sprintf("Content-Length: %d\n\n%s\n", n, body), "framed " + body}
	}
	return drawn{"\r\n \n", ""}
}

func TestReaderAnyCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var wire strings.Builder
		want := []string{}
		for _, m := range rapid.SliceOfN(rapid.Custom(drawMessage), 0, 12).Draw(t, "messages") {
			wire.WriteString(m.wire)
			if m.want != "" {
				want = append(want, m.want)
			}
		}
		if rapid.Bool().Draw(t, "unterminated") {
			wire.WriteString(`{"é":1}`)
			want = append(want, `open {"é":1}`)
		}
		sizes := rapid.SliceOfN(rapid.IntRange(1, 60), 1, 20).Draw(t, "cuts")
		got := readAll(chunks([]byte(wire.String()), sizes), ReaderOptions{})
		if !assert.ObjectsAreEqual(want, got) {
			t.Fatalf("want %q\ngot  %q", want, got)
		}
	})
}
