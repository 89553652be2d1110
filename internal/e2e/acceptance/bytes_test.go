package acceptance

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpagents/internal/testkit/wait"

	"github.com/stretchr/testify/require"
)

// recorded is a stream as a native server may write it: nothing in it may
// change on its way through the sandbox and the bridge.
func recorded() []byte {
	var b bytes.Buffer
	for _, line := range []string{
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"héllo, 日本語, 🦊, \u00e9\/\u2028"}}`,
		`{ "jsonrpc" : "2.0" ,  "method":"x","params":{"n":9007199254740993, "f":1.50, "e":1E+2, "z":-0}}`,
		"\t" + `{"jsonrpc":"2.0","method":"cr"}` + "\r",
		``,
		`not json at all`,
		`"text"`, `123`, `null`,
		"invalid utf-8: \xff\xfe",
		`{"jsonrpc":"2.0","id":"server-1","method":"elicitation/create","params":{"b":2,"a":1}}`,
		`{"jsonrpc":"2.0","method":"big","params":"` + strings.Repeat("ü", 5<<19) + `"}`,
		`{"jsonrpc":"2.0","method":"bigger","params":"` + strings.Repeat("x", 11<<20) + `"}`,
		`{"jsonrpc":"2.0","method":"last"}`,
	} {
		b.WriteString(line + "\n")
	}
	return b.Bytes()
}

func TestNativeStreamPassesByteForByte(t *testing.T) {
	for _, runtime := range []string{"local", "docker"} {
		t.Run(runtime, func(t *testing.T) {
			image := ""
			if runtime == "docker" {
				image = fakeImage(t)
			}
			s := newSetting(t, runtime, image)
			want := recorded()
			file := filepath.Join(s.workspace, "stream")
			require.NoError(t, os.WriteFile(file, want, 0o644))
			c := s.start(t)
			c.initialize()
			c.codex(script(`{"do":"file","path":"`+file+`"}`, `{"do":"answer","text":"end"}`), nil)
			var got bytes.Buffer
			timeout := time.After(wait.Limit)
			for got.Len() < len(want) {
				select {
				case line, ok := <-c.lines:
					require.True(t, ok)
					got.Write(line)
				case <-timeout:
					require.FailNow(t, "the stream did not arrive")
				}
			}
			require.True(t, bytes.Equal(want, got.Bytes()), "the stream changed")
			require.NoError(t, c.in.Close())
			go func() {
				for range c.lines { //nolint:revive // take the rest
				}
			}()
			require.Zero(t, c.exit())
		})
	}
}
