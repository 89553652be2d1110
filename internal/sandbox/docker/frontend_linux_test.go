package docker

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox/tail"
)

// A client that passes no environment at all gets a server whatever is wrong
// with the engine, and calls that say what it is.
func TestFrontEndWithoutEngine(t *testing.T) {
	bin := frontEndBinary(t)
	for _, tt := range []struct {
		name, config string
		env          []string
		want         string
	}{
		{"broken configuration", `{"currentContext":`, nil, "config.json"},
		{"a context that is gone", `{"currentContext":"gone"}`, nil, `context \"gone\" of the current context`},
		{"no engine", `{}`, []string{"DOCKER_HOST=unix:///nonexistent/engine.sock"}, "unix:///nonexistent/engine.sock (DOCKER_HOST)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := userHome{t, t.TempDir()}
			home.write(".docker/config.json", tt.config)
			ws := filepath.Join(home.dir, "project")
			require.NoError(t, os.Mkdir(ws, 0o755))
			cmd := exec.Command(bin, "--provider", "codex", "--model_base_url", "http://127.0.0.1:9/v1", "--workspace", ws)
			cmd.Dir = ws
			cmd.Env = append([]string{"DOCKER_CONFIG=" + filepath.Join(home.dir, ".docker")}, tt.env...) // and no PATH, no HOME
			f := &frontEnd{t: t, stderr: &tail.Buffer{}}
			cmd.Stderr = f.stderr
			var err error
			f.stdin, err = cmd.StdinPipe()
			require.NoError(t, err)
			stdout, err := cmd.StdoutPipe()
			require.NoError(t, err)
			f.stdout = bufio.NewReader(stdout)
			begin := time.Now()
			require.NoError(t, cmd.Start())
			t.Cleanup(func() {
				_ = f.stdin.Close()
				require.NoError(t, cmd.Wait(), f.stderr.String())
			})
			f.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
			require.Contains(t, f.answer(1), `"serverInfo"`)
			require.Less(t, time.Since(begin), 2*time.Second)
			f.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			f.send(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
			require.Contains(t, f.answer(2), `"codex"`)
			f.send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"hello","cwd":"` + ws + `","sandbox":"read-only"}}}`)
			answer := f.answer(3)
			require.Contains(t, answer, tt.want)
			require.Contains(t, answer, "DOCKER_HOST")
		})
	}
}
