package dockerbox

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/provider/browser/lease"
)

// page serves a page on the test's loopback and returns its port.
func page(t *testing.T) int {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`<!doctype html><title>served on the host</title><h1>Hello</h1><script>console.log("loaded")</script>`))
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().(*net.TCPAddr).Port
}

func acquire(t *testing.T, b *Box, port, app int) (lease.Record, string) {
	t.Helper()
	rec, err := b.Acquire(t.Context(), lease.Request{Session: "s", LocalPort: port, Viewport: "800x600", AppPort: app})
	require.NoError(t, err)
	id, err := b.Identity(t.Context(), rec)
	require.NoError(t, err)
	return rec, id
}

// A page on this machine's loopback is opened under its own address; the browser
// has the asked size; the identity stays while the browser does.
func TestLease(t *testing.T) {
	b, _ := newBox(t)
	app := page(t)
	port, err := b.Port(t.Context())
	require.NoError(t, err)
	c := startTool(t, b, port)
	rec, id := acquire(t, b, port, app)
	require.Contains(t, c.call("new_page", map[string]any{"url": "http://127.0.0.1:" + itoa(app)}), itoa(app))
	require.Contains(t, c.call("take_snapshot", map[string]any{"pageId": 2}), "served on the host")
	size := c.call("evaluate_script", map[string]any{"pageId": 2, "function": "() => [window.outerWidth, window.outerHeight].join('x')"})
	require.Contains(t, size, "800x600")
	state, err := b.Status(t.Context(), rec)
	require.NoError(t, err)
	require.Equal(t, lease.Live, state)
	again, err := b.Identity(t.Context(), rec)
	require.NoError(t, err)
	require.Equal(t, id, again)

	require.NoError(t, b.Release(t.Context(), rec, lease.Idle))
	state, err = b.Status(t.Context(), rec)
	require.NoError(t, err)
	require.Equal(t, lease.Lost, state)
	_, err = b.Identity(t.Context(), rec)
	require.ErrorContains(t, err, "has ended")
	require.NoError(t, b.Release(t.Context(), rec, lease.Idle), "once more is no error")
	require.Contains(t, c.tryCall("list_pages", nil).text(), "Could not connect to Chrome")

	next, nextID := acquire(t, b, port, app)
	require.NotEqual(t, id, nextID)
	require.NotEqual(t, rec.Generation, next.Generation)
	require.NotContains(t, c.call("list_pages", nil), itoa(app), "the pages of the last lease are gone")
}

// The browser's death shows in the identity and the status, and the same tool
// server finds the next one at the same address.
func TestBrowserDies(t *testing.T) {
	b, _ := newBox(t)
	c := startTool(t, b, firstPort)
	rec, _ := acquire(t, b, firstPort, 0)
	c.call("list_pages", nil)
	require.NoError(t, b.loan.browser.proc.Signal(syscall.SIGKILL, true))
	<-b.loan.browser.proc.Done()
	_, err := b.Identity(t.Context(), rec)
	require.ErrorContains(t, err, "the browser has ended")
	state, err := b.Status(t.Context(), rec)
	require.NoError(t, err)
	require.Equal(t, lease.Lost, state)
	require.True(t, c.tryCall("list_pages", nil).Result.IsError)
	acquire(t, b, firstPort, 0)
	require.Contains(t, c.call("list_pages", nil), "about:blank")
}

// A browser that does not answer is not verified: a frozen one, within the bound.
func TestFrozenBrowser(t *testing.T) {
	b, _ := newBox(t)
	rec, _ := acquire(t, b, firstPort, 0)
	require.NoError(t, b.loan.browser.proc.Signal(syscall.SIGSTOP, true))
	_, err := b.Identity(t.Context(), rec)
	require.Error(t, err)
	require.NoError(t, b.Release(t.Context(), rec, lease.Idle))
	acquire(t, b, firstPort, 0)
}

// The box goes: the lease is lost, and the next one asks for the tool server to
// be started again, in the namespace of the new box.
func TestBoxDies(t *testing.T) {
	b, _ := newBox(t)
	old := startTool(t, b, firstPort)
	rec, id := acquire(t, b, firstPort, 0)
	docker(t, "kill", b.open.ID())
	<-b.open.Ended()
	_, err := b.Identity(t.Context(), rec)
	require.Error(t, err)
	_, err = b.Acquire(t.Context(), lease.Request{Session: "s", LocalPort: firstPort, Viewport: "800x600"})
	require.ErrorIs(t, err, lease.ErrPortTaken)
	require.Contains(t, old.tryCall("list_pages", nil).text(), "Could not connect to Chrome")
	c := startTool(t, b, firstPort+1)
	_, next := acquire(t, b, firstPort+1, 0)
	require.NotEqual(t, id, next)
	c.call("list_pages", nil)
}

// Nothing listens on the application's port: said before anything is made.
func TestAppPortWithoutServer(t *testing.T) {
	b, _ := newBox(t)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	_, err = b.Acquire(t.Context(), lease.Request{Session: "s", LocalPort: firstPort, Viewport: "800x600", AppPort: port})
	var unavailable *lease.UnavailableError
	require.ErrorAs(t, err, &unavailable)
	require.Equal(t, lease.DevServer, unavailable.Cause)
	require.Contains(t, err.Error(), "GUI not verified")
	require.Contains(t, err.Error(), "dev server not reachable")
	require.NotContains(t, err.Error(), "\n")
	require.Nil(t, b.open)
}

// Chromium's own sandbox works: its renderers are in namespaces of their own.
func TestRenderersAreSandboxed(t *testing.T) {
	b, _ := newBox(t)
	rec, _ := acquire(t, b, firstPort, 0)
	id := b.open.ID()
	// The engine's top shows pids of the host.
	var renderers int
	for line := range strings.Lines(docker(t, "top", id, "-eo", "pid,args")) {
		if pid, args, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.Contains(args, "--type=renderer") {
			renderers++
			require.NotEqual(t, namespace(t, "self", "user"), namespace(t, pid, "user"))
			require.NotEqual(t, namespace(t, initPID(t, id), "net"), namespace(t, pid, "net"))
		}
	}
	require.NotZero(t, renderers)
	require.NoError(t, b.Release(t.Context(), rec, lease.Shutdown))
}

// The control of every test that a page cannot reach the control port: a tool
// server that is not told to block it lets a page read the browser's address and
// open another page past the tool server.
func TestControlPortIsAHoleUnlessBlocked(t *testing.T) {
	b, _ := newBox(t)
	c := startTool(t, b, firstPort)
	acquire(t, b, firstPort, 0)
	c.call("new_page", map[string]any{"url": "http://127.0.0.1:" + itoa(firstPort) + "/json/version"})
	read := c.call("evaluate_script", map[string]any{"pageId": 2, "function": `async () =>
		document.body.innerText + " opened " + (await fetch("/json/new?about:blank", {method: "PUT"})).status`})
	require.Contains(t, read, "webSocketDebuggerUrl")
	require.Contains(t, read, "opened 200")
}

// Leases come and go without leaving a process behind in the box, or memory.
func TestManyLeases(t *testing.T) {
	b, _ := newBox(t)
	var first int64
	for i := range rounds() {
		rec, _ := acquire(t, b, firstPort, 0)
		require.NoError(t, b.Release(t.Context(), rec, lease.Idle))
		lines := strings.Count(docker(t, "top", b.open.ID(), "-eo", "pid"), "\n")
		require.Equal(t, 2, lines, "the heading and sandbox-init")
		require.Empty(t, docker(t, "exec", b.open.ID(), "find", "/tmp", "/home/agent", "-xdev", "!", "-type", "d"))
		if i == 0 {
			first = memory(t, b.open.ID())
		}
	}
	last := memory(t, b.open.ID())
	t.Logf("the box held %d KiB after the first lease and %d KiB after the last", first>>10, last>>10)
	require.Less(t, last, first+(8<<20))
}

// memory is what programs and tmpfs of a container hold, in bytes: without the
// kernel's cache of the image's files, which it gives back when it must.
func memory(t *testing.T, id string) (held int64) {
	t.Helper()
	stat := docker(t, "exec", id, "sh", "-c", "cat /sys/fs/cgroup/memory/memory.stat 2>/dev/null || cat /sys/fs/cgroup/memory.stat")
	found := 0
	for line := range strings.Lines(stat) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if key == "rss" || key == "anon" || key == "shmem" {
			n, err := strconv.ParseInt(value, 10, 64)
			require.NoError(t, err)
			held += n
			found++
		}
	}
	require.Equal(t, 2, found, stat)
	return held
}

// rounds is how often a test of what is left runs.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("MCP_AGENTS_ROUNDS")); err == nil && n > 0 {
		return n
	}
	return 3
}
