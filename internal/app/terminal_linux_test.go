package app

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/containerd/console"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/config"
)

func TestWarnOfTerminal(t *testing.T) {
	pty, path, err := console.NewPty()
	require.NoError(t, err)
	defer pty.Close()
	terminal, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer terminal.Close()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0) // a character device, and no terminal
	require.NoError(t, err)
	defer null.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	defer file.Close()
	closed, err := os.Open(os.DevNull)
	require.NoError(t, err)
	require.NoError(t, closed.Close())

	const rest = " is a terminal: an MCP client speaks over pipes; use `docker run -i` without -t\n"
	for _, tt := range []struct {
		name          string
		stdin, stdout *os.File
		want          string
	}{
		{"both", terminal, terminal, "[mcp-agents] stdin" + rest},
		{"stdin", terminal, w, "[mcp-agents] stdin" + rest},
		{"stdout", r, terminal, "[mcp-agents] stdout" + rest},
		{"pipes", r, w, ""},
		{"null device", null, null, ""},
		{"files", file, file, ""},
		{"closed", closed, closed, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			warnOfTerminal(tt.stdin, tt.stdout, NewLogger(&out, slog.LevelWarn, config.LogText))
			assert.Equal(t, tt.want, out.String())
		})
	}
}
