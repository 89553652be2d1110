package localtool

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"mcpagents/internal/provider/browser/lease"
)

// TestMain makes the test binary a tool server that writes its arguments and
// what it reads, for as long as it is named so.
func TestMain(m *testing.M) {
	if os.Getenv("FAKE_TOOL") != "" {
		_, _ = io.WriteString(os.Stdout, strings.Join(os.Args[1:], " ")+" NO_COLOR="+os.Getenv("NO_COLOR")+"\n")
		if os.Getenv("FAKE_TOOL") == "deaf" {
			child := exec.Command("sleep", "60")
			_ = child.Start()
			select {}
		}
		_, _ = io.Copy(os.Stderr, os.Stdin)
		os.Exit(7)
	}
	goleak.VerifyTestMain(m)
}

func start(t *testing.T, d *Downstream, args ...string) *lease.Child {
	t.Helper()
	c, err := d.Start(t.Context(), args)
	require.NoError(t, err)
	return c
}

func TestExplicitCommand(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	c := start(t, &Downstream{Command: []string{self, "own"}, Env: append(os.Environ(), "FAKE_TOOL=1")}, "--browserUrl", "x")
	assert.Equal(t, "explicit", c.Source)
	_, err = io.WriteString(c.Stdin, "hello")
	require.NoError(t, err)
	require.NoError(t, c.Stdin.Close())
	exit, err := c.Wait(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 7, exit.Code)
	out, err := io.ReadAll(c.Stdout)
	require.NoError(t, err, "what it wrote last is read after its end")
	assert.Equal(t, "own --browserUrl x NO_COLOR=1\n", string(out))
	said, err := io.ReadAll(c.Stderr)
	require.NoError(t, err)
	assert.Equal(t, "hello", string(said))
	require.NoError(t, c.Close(t.Context()))
}

func TestCloseKillsTheGroup(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	c := start(t, &Downstream{Command: []string{self}, Env: append(os.Environ(), "FAKE_TOOL=deaf")})
	buf := make([]byte, 100)
	_, err = c.Stdout.Read(buf)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, c.Close(ctx))
	exit, err := c.Wait(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 9, exit.Signal)
	assert.Equal(t, 137, exit.Code)
	_, err = c.Stdout.Read(buf)
	require.Error(t, err)
}

func TestResolution(t *testing.T) {
	dir := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(dir, "node_modules", path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
	}
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "node"), []byte("#!/bin/sh\n"), 0o755))
	t.Setenv("PATH", bin)
	t.Run("214 npx is the last resort", func(t *testing.T) {
		assert.Equal(t, program{[]string{"npx", "-y", "chrome-devtools-mcp@latest"}, "npx fallback"}, resolve(nil, dir))
		var log bytes.Buffer
		d := &Downstream{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))}
		_, err := d.Start(t.Context(), nil)
		require.ErrorContains(t, err, "--browser_command", "npx is not on this PATH")
		assert.Contains(t, log.String(), "first startup may wait for npm to resolve chrome-devtools-mcp@latest")
	})
	write(".bin/chrome-devtools-mcp", "")
	assert.Equal(t, program{[]string{filepath.Join(dir, "node_modules/.bin/chrome-devtools-mcp")}, "local binary"}, resolve(nil, dir))
	t.Run("213 an installed package comes first", func(t *testing.T) {
		script := filepath.Join(dir, "node_modules/chrome-devtools-mcp/build/main.js")
		write("chrome-devtools-mcp/build/main.js", "")
		for _, manifest := range []string{`{"bin":{"chrome-devtools-mcp":"./build/main.js","x":"y"}}`, `{"bin":"build/main.js"}`} {
			write("chrome-devtools-mcp/package.json", manifest)
			assert.Equal(t, program{[]string{filepath.Join(bin, "node"), script}, "local package"}, resolve(nil, dir))
		}
		for _, manifest := range []string{`{"bin":{"chrome-devtools-mcp":"../../../etc/passwd"}}`, `{"bin":7}`, `{}`, `x`} {
			write("chrome-devtools-mcp/package.json", manifest)
			assert.Equal(t, "local binary", resolve(nil, dir).source, manifest)
		}
	})
	assert.Equal(t, program{[]string{"mine"}, "explicit"}, resolve([]string{"mine"}, dir))
}

func TestPort(t *testing.T) {
	d := &Downstream{}
	a, err := d.Port(t.Context())
	require.NoError(t, err)
	assert.Positive(t, a)
}
