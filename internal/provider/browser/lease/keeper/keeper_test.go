package keeper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"mcpagents/internal/provider/browser/lease"
	"mcpagents/internal/provider/browser/lease/dockerbox"
	"mcpagents/internal/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noEngine is a runtime that cannot make anything.
type noEngine struct{ sandbox.Runtime }

func (noEngine) Start(context.Context, sandbox.Spec) (sandbox.Instance, error) {
	return nil, errors.New("no engine here")
}

// keep runs a keeper without an engine and returns what it handed over.
func keep(t *testing.T, req lease.Request) handover {
	t.Helper()
	box := dockerbox.New(dockerbox.Config{Runtime: noEngine{}, Log: slog.New(slog.DiscardHandler)})
	var out bytes.Buffer
	in, hold := io.Pipe()
	defer hold.Close()
	require.NoError(t, Keep(t.Context(), box, req, os.Getpid(), in, &out))
	var h handover
	require.NoError(t, json.Unmarshal(out.Bytes(), &h))
	return h
}

func TestKeeperWithoutABrowser(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	port := taken.Addr().(*net.TCPAddr).Port
	require.Equal(t, StatusPortTaken, keep(t, lease.Request{Session: "s", LocalPort: port, Viewport: "1x1"}).Status)
	require.NoError(t, taken.Close())
	h := keep(t, lease.Request{Session: "s", LocalPort: port, Viewport: "1x1"})
	require.Equal(t, StatusNone, h.Status)
	require.Contains(t, h.Error, "GUI not verified — no browser box available")
	require.Contains(t, h.Error, "no engine here")
	h = keep(t, lease.Request{Session: "s", LocalPort: port, Viewport: "1x1", AppPort: port})
	require.Equal(t, StatusPortTaken, h.Status, "the keeper's own listener is not the application")
	path, err := socketPath("s")
	require.NoError(t, err)
	require.NoFileExists(t, path)
}

func TestNoKeeper(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	status, err := Status(t.Context(), "s", "")
	require.NoError(t, err)
	require.Equal(t, StatusNone, status)
	require.NoError(t, Release(t.Context(), "s", ""))
	path, err := socketPath("s")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, nil, 0o600)) // left by one that was killed
	status, err = Status(t.Context(), "s", "")
	require.NoError(t, err)
	require.Equal(t, StatusNone, status)
}

// A keeper that says nothing is not taken for one that has no lease.
func TestMuteKeeper(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	l, err := listen("s")
	require.NoError(t, err)
	defer l.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if c, err := l.Accept(); err == nil {
			_ = c.Close()
		}
	}()
	status, err := Status(t.Context(), "s", "")
	require.Error(t, err)
	require.Equal(t, StatusUnknown, status)
	<-done
}

// Somebody else's directory is not used: its owner could answer for a keeper.
func TestDirectoryOfOthers(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "mcp-agents-lease"), 0o755))
	status, err := Status(t.Context(), "s", "")
	require.ErrorContains(t, err, "not this user's alone")
	require.Equal(t, StatusUnknown, status)
	require.NoError(t, os.Remove(filepath.Join(dir, "mcp-agents-lease")))
	require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(dir, "mcp-agents-lease")))
	_, err = Status(t.Context(), "s", "")
	require.ErrorContains(t, err, "not this user's alone")
}

func TestSocketPathIsShort(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("TMPDIR", t.TempDir())
	path, err := socketPath(strings.Repeat("../x/", 100))
	require.NoError(t, err)
	require.Len(t, filepath.Base(path), len("0123456789abcdef.sock"))
}

// A keeper that cannot be started, or says nothing of use, is a failure.
func TestAcquireFailures(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, argv := range [][]string{{"/no/such/program"}, {"true"}, {"echo", "not JSON"}} {
		var out bytes.Buffer
		status, err := Acquire(ctx, argv, lease.Request{Session: "s"}, &out)
		require.Error(t, err, argv)
		require.Equal(t, StatusFailed, status, argv)
		require.Empty(t, out.String())
	}
	status, err := Acquire(ctx, []string{"echo", `{"status":69,"error":"none"}`}, lease.Request{Session: "s"}, io.Discard)
	require.EqualError(t, err, "none")
	require.Equal(t, StatusNone, status)
}
