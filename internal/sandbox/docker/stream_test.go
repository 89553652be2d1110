package docker

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"testing"
	"testing/iotest"

	"github.com/docker/docker/api/types"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox/tail"
)

// piece is what the engine sends for one write of the container.
func piece(stream byte, data string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{stream, 0, 0, 0}, uint32(len(data)))
	return append(b, data...)
}

func claim(stream byte, length uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{stream, 0, 0, 0}, length)
}

func TestDemultiplex(t *testing.T) {
	huge := string(bytes.Repeat([]byte("h"), 3<<20))
	for name, tt := range map[string]struct {
		in   [][]byte
		out  string
		diag string
		err  string // in part; empty for a regular end
	}{
		"nothing":            {nil, "", "", ""},
		"one":                {[][]byte{piece(1, "abc")}, "abc", "", ""},
		"header-like bytes":  {[][]byte{piece(1, "\x02\x00\x00\x00\x00\x00\x00\x05")}, "\x02\x00\x00\x00\x00\x00\x00\x05", "", ""},
		"stderr aside":       {[][]byte{piece(2, "oops"), piece(1, "a"), piece(2, "!"), piece(1, "b")}, "ab", "oops!", ""},
		"length 0":           {[][]byte{piece(1, ""), piece(2, ""), piece(1, "x"), piece(1, "")}, "x", "", ""},
		"huge":               {[][]byte{piece(1, huge), piece(1, "end")}, huge + "end", "", ""},
		"a terminal's bytes": {[][]byte{[]byte("bash-5.2$ ls\r\n")}, "", "", "is the container using a terminal?"},
		"unknown stream":     {[][]byte{piece(1, "a"), piece(3, "daemon")}, "a", "", "6 bytes of unknown stream 3"},
		"stdin's stream":     {[][]byte{piece(0, "a")}, "", "", "unknown stream 0"},
		"endless stderr":     {[][]byte{claim(2, 1<<32-1)}, "", "", "unknown stream 2"},
		"end in a header":    {[][]byte{piece(1, "a"), {1, 0, 0}}, "a", "", "unexpected EOF"},
		"end in a piece":     {[][]byte{claim(1, 10), []byte("half")}, "half", "", "unexpected EOF"},
		"end in stderr":      {[][]byte{claim(2, 10), []byte("half")}, "", "half", "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			for how, reader := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader} {
				if how == "byte by byte" && name == "huge" {
					continue
				}
				var diag tail.Buffer
				s := &stream{diag: &diag, conn: types.HijackedResponse{Reader: bufio.NewReader(reader(bytes.NewReader(bytes.Join(tt.in, nil))))}}
				out, err := io.ReadAll(s)
				require.True(t, tt.out == string(out), "%s: %d bytes", how, len(out))
				require.Equal(t, tt.diag, diag.String(), how)
				if tt.err == "" {
					require.NoError(t, err, how)
				} else {
					require.ErrorContains(t, err, tt.err, how)
				}
			}
		})
	}
}

func FuzzDemultiplex(f *testing.F) {
	f.Add(piece(1, "abc"))
	f.Add(append(piece(2, "x"), piece(1, "")...))
	f.Fuzz(func(t *testing.T, in []byte) {
		var diag tail.Buffer
		s := &stream{diag: &diag, conn: types.HijackedResponse{Reader: bufio.NewReader(bytes.NewReader(in))}}
		out, _ := io.ReadAll(s)
		require.LessOrEqual(t, len(out)+len(diag.String()), len(in))
	})
}
