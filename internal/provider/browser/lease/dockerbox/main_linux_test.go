package dockerbox

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/provider/browser/lease"
	"mcpagents/internal/sandbox"
	engine "mcpagents/internal/sandbox/docker"
	"mcpagents/internal/testkit/images"
)

// newBox is a Box without a network, with a workspace of a user that is not root.
func newBox(t *testing.T) (*Box, string) {
	t.Helper()
	tools, browser := images.Browser(t)
	rt, err := engine.New("")
	require.NoError(t, err)
	workspace := t.TempDir()
	require.NoError(t, os.Chmod(workspace, 0o755))
	if os.Getuid() == 0 {
		require.NoError(t, os.Chown(workspace, 1000, 1000))
	}
	b := New(Config{Runtime: rt, ToolImage: tools, BrowserImage: browser, Network: "none", Dir: workspace,
		Workspace: sandbox.Spec{Mounts: []sandbox.Mount{{Path: workspace}}, WorkDir: workspace, Instance: t.Name(), Grace: 500 * time.Millisecond},
		Log:       slog.New(slog.NewTextHandler(t.Output(), nil))})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, b.Close(ctx))
		list, err := rt.List(ctx)
		require.NoError(t, err)
		for _, l := range list {
			require.NotEqual(t, t.Name(), l.Instance, "left: %+v", l)
		}
		require.NoError(t, rt.Close())
	})
	return b, workspace
}

// tool is a running tool server.
type tool struct {
	t     *testing.T
	child *lease.Child
	lines *bufio.Reader
	id    int
	said  sync.WaitGroup
}

// startTool starts the tool server for a port, as the provider does.
func startTool(t *testing.T, b *Box, port int) *tool {
	t.Helper()
	child, err := b.Start(t.Context(), []string{"--browserUrl", fmt.Sprintf("http://127.0.0.1:%d", port), "--no-usage-statistics"})
	require.NoError(t, err)
	c := &tool{t: t, child: child, lines: bufio.NewReaderSize(child.Stdout, 1<<20)}
	c.said.Go(func() { _, _ = io.Copy(t.Output(), child.Stderr) })
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, child.Close(ctx))
		c.said.Wait()
	})
	c.request("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "test", "version": "1"}})
	_, err = io.WriteString(child.Stdin, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	require.NoError(t, err)
	return c
}

type answer struct {
	ID     any `json:"id"`
	Result struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		IsError bool `json:"isError"`
	} `json:"result"`
	Error json.RawMessage `json:"error"`
}

// text is all text of a tool's answer.
func (a answer) text() string {
	var all []string
	for _, c := range a.Result.Content {
		all = append(all, c.Text)
	}
	return strings.Join(all, "\n")
}

func (c *tool) request(method string, params any) answer {
	c.t.Helper()
	c.id++
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.id, "method": method, "params": params})
	require.NoError(c.t, err)
	_, err = c.child.Stdin.Write(append(line, '\n'))
	require.NoError(c.t, err)
	for {
		line, err := c.lines.ReadBytes('\n')
		require.NoError(c.t, err, "the tool server's output ended")
		var a answer
		require.NoError(c.t, json.Unmarshal(line, &a))
		if a.ID == float64(c.id) {
			return a
		}
	}
}

// call calls a tool that must answer without an error.
func (c *tool) call(name string, args map[string]any) string {
	c.t.Helper()
	a := c.tryCall(name, args)
	require.Empty(c.t, a.Error)
	require.False(c.t, a.Result.IsError, a.text())
	return a.text()
}

func (c *tool) tryCall(name string, args map[string]any) answer {
	c.t.Helper()
	if args == nil {
		args = map[string]any{} // null is refused
	}
	return c.request("tools/call", map[string]any{"name": name, "arguments": args})
}

func itoa(n int) string { return strconv.Itoa(n) }

func docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("docker", args...).CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

// namespace is a process's namespace of a kind, as this machine sees it.
func namespace(t *testing.T, pid, kind string) string {
	t.Helper()
	link, err := os.Readlink(filepath.Join("/proc", pid, "ns", kind))
	require.NoError(t, err)
	return link
}

func initPID(t *testing.T, id string) string {
	return strings.TrimSpace(docker(t, "inspect", "--format", "{{.State.Pid}}", id))
}
