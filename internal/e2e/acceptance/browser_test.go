package acceptance

import (
	"encoding/json"
	"fmt"
	"image/png"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox/docker"
	"mcpagents/internal/testkit/images"
	"mcpagents/internal/testkit/wait"
)

// browserSetting is a setting with the real tool server and the real browser,
// without a network.
func browserSetting(t *testing.T, args ...string) *setting {
	t.Helper()
	tools, chromium := images.Browser(t)
	s := newSetting(t, "docker", tools)
	s.args = append([]string{"--provider", "browser", "--browser_image", chromium, "--browser_network", "none", "--browser_viewport", "800x600",
		"--handshake_timeout", "60", "--stop_grace", "1"}, args...)
	return s
}

// webPage serves a page on the test's loopback and returns its port.
func webPage(t *testing.T) int {
	t.Helper()
	var port int
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, `<!doctype html><title>the host's page</title><h1 style="background:linear-gradient(red,blue)">Hello 你好</h1>
<button id=b>Press</button><input type=file id=f aria-label=Upload><p id=p>untouched</p><script>
b.onclick=()=>{p.textContent="pressed";console.log("button pressed")}
f.onchange=async()=>{p.textContent="uploaded "+await f.files[0].text()}</script>`)
	}))
	t.Cleanup(s.Close)
	port = s.Listener.Addr().(*net.TCPAddr).Port
	return port
}

// tool calls a tool of the browser.
func (c *client) browserTool(name string, args map[string]any) reply {
	c.t.Helper()
	return c.answer(c.startTool(name, args))
}

func (c *client) startTool(name string, args map[string]any) int {
	c.t.Helper()
	if args == nil {
		args = map[string]any{}
	}
	return c.request("tools/call", map[string]any{"name": name, "arguments": args})
}

// toolResult is the part of a result that these tests look at.
type toolResult struct {
	IsError           bool `json:"isError"`
	StructuredContent struct {
		Code           string `json:"code"`
		Action         string `json:"action"`
		StateLost      bool   `json:"stateLost"`
		OutcomeUnknown bool   `json:"outcomeUnknown"`
		FailClosed     bool   `json:"failClosed"`
	} `json:"structuredContent"`
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
}

func (r reply) tool(t *testing.T) toolResult {
	t.Helper()
	require.Nil(t, r.Error)
	var result toolResult
	require.NoError(t, json.Unmarshal(r.Result, &result))
	return result
}

func (r toolResult) text() string {
	var all []string
	for _, c := range r.Content {
		all = append(all, c.Text)
	}
	return strings.Join(all, "\n")
}

// works calls a tool that must succeed and returns its text.
func (c *client) works(name string, args map[string]any) string {
	c.t.Helper()
	r := c.browserTool(name, args).tool(c.t)
	require.False(c.t, r.IsError, "%s: %s", name, r.text())
	return r.text()
}

// evaluate runs a function in a page and returns what the tool says.
func (c *client) evaluate(page int, function string) string {
	c.t.Helper()
	return c.works("evaluate_script", map[string]any{"pageId": page, "function": function})
}

// open opens a page and returns its number.
func (c *client) open(address string) int {
	c.t.Helper()
	list := c.works("new_page", map[string]any{"url": address})
	found := regexp.MustCompile(`(\d+): [^\n]*` + regexp.QuoteMeta(address)).FindStringSubmatch(list)
	require.NotNil(c.t, found, list)
	n, err := strconv.Atoi(found[1])
	require.NoError(c.t, err)
	return n
}

// uid is the number of an element in a snapshot of a page.
func (c *client) uid(page int, element string) string {
	c.t.Helper()
	snapshot := c.works("take_snapshot", map[string]any{"pageId": page})
	found := regexp.MustCompile(`uid=(\S+) ` + regexp.QuoteMeta(element)).FindStringSubmatch(snapshot)
	require.NotNil(c.t, found, snapshot)
	return found[1]
}

func host(port int) string { return fmt.Sprintf("http://127.0.0.1:%d/", port) }

// A page of this machine is worked on with real parts, and what is written lands
// in the workspace with its owner's rights.
func TestBrowserWorks(t *testing.T) {
	port := webPage(t)
	s := browserSetting(t, "--browser_app_port", strconv.Itoa(port))
	c := s.start(t)
	c.initialize()
	page := c.open(host(port))
	c.works("click", map[string]any{"pageId": page, "uid": c.uid(page, `button "Press"`)})
	require.Contains(t, c.evaluate(page, `() => document.getElementById("p").textContent`), "pressed")
	require.Contains(t, c.works("list_console_messages", map[string]any{"pageId": page}), "button pressed")

	picture := filepath.Join(s.workspace, "shots", "page.png")
	c.works("take_screenshot", map[string]any{"pageId": page, "filePath": picture})
	f, err := os.Open(picture)
	require.NoError(t, err)
	defer f.Close()
	shot, err := png.Decode(f)
	require.NoError(t, err)
	require.LessOrEqual(t, shot.Bounds().Dx(), 800)
	require.Greater(t, shot.Bounds().Dx(), 700)
	colours := map[any]bool{}
	for y := range shot.Bounds().Dy() {
		for x := range shot.Bounds().Dx() {
			colours[shot.At(x, y)] = true
		}
	}
	require.Greater(t, len(colours), 50, "the picture is not blank")
	for _, path := range []string{picture, filepath.Dir(picture)} {
		require.Equal(t, ownerUID(t, s.workspace), ownerUID(t, path), path)
	}

	upload := filepath.Join(s.workspace, "upload.txt")
	require.NoError(t, os.WriteFile(upload, []byte("from the workspace"), 0o644))
	c.works("upload_file", map[string]any{"pageId": page, "uid": c.uid(page, `button "Upload`), "filePaths": []string{upload}})
	require.Contains(t, c.evaluate(page, `() => document.getElementById("p").textContent`), "uploaded from the workspace")

	inside := filepath.Join(os.TempDir(), filepath.Base(s.run)+".png")
	c.works("take_screenshot", map[string]any{"pageId": page, "filePath": inside})
	require.NoFileExists(t, inside, "a path below /tmp is the container's own")
	denied := c.browserTool("take_screenshot", map[string]any{"pageId": page, "filePath": "/etc/x.png"}).tool(t)
	require.True(t, denied.IsError, denied.text())

	trace := filepath.Join(s.workspace, "trace.json.gz")
	c.works("performance_start_trace", map[string]any{"pageId": page, "reload": true, "autoStop": true, "filePath": trace})
	info, err := os.Stat(trace)
	require.NoError(t, err)
	require.Greater(t, info.Size(), int64(1000))

	require.NoError(t, c.in.Close())
	require.Zero(t, c.exit())
	s.requireNothing(t, c.cmd.Process.Pid)
}

func ownerUID(t *testing.T, path string) uint32 {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Sys().(*syscall.Stat_t).Uid
}

// boxID is the container in which the browser of a front end runs.
func (c *client) boxID() string { return c.containerOf("chromium") }

// containerOf is the front end's container with that provider's mark.
func (c *client) containerOf(provider string) string {
	c.t.Helper()
	ids := strings.Fields(output(c.t, "docker", "ps", "-q", "--no-trunc", "--filter", "label="+docker.LabelInstance+"="+strconv.Itoa(c.cmd.Process.Pid),
		"--filter", "label="+docker.LabelProvider+"="+provider))
	require.Len(c.t, ids, 1)
	return ids[0]
}

// signalBrowser signals the browser's first process from within its box.
func (c *client) signalBrowser(signal string) {
	c.t.Helper()
	// The pattern must not match the shell that looks.
	out, err := exec.Command("docker", "exec", c.boxID(), "sh", "-c", `for p in /proc/[0-9]*; do
		case "$(tr '\0' ' ' <$p/cmdline 2>/dev/null)" in *--remote-debugging-[p]ort=*--user-data-dir=/tmp/profile*) kill -`+signal+` ${p#/proc/}; echo done;; esac
		done`).CombinedOutput()
	require.Contains(c.t, string(out), "done", "%v", err) // the shell itself may go with the browser
}

// The browser dies under a call: the outcome is said to be unknown, and the next
// call gets another browser.
func TestBrowserKilledDuringACall(t *testing.T) {
	c := browserSetting(t).start(t)
	c.initialize()
	c.works("list_pages", nil)
	call := c.startTool("evaluate_script", map[string]any{"pageId": 1, "function": `async () => { await new Promise(r => setTimeout(r, 50000)) }`})
	c.letItRun(time.Second) // it has got to the browser
	c.signalBrowser("KILL")
	lost := c.answer(call).tool(t)
	require.True(t, lost.IsError)
	require.Equal(t, "browser_lease_replaced", lost.StructuredContent.Code)
	require.True(t, lost.StructuredContent.OutcomeUnknown)
	require.True(t, lost.StructuredContent.StateLost)
	require.Contains(t, lost.text(), "never blindly replay")
	require.Contains(t, c.works("list_pages", nil), "about:blank")
}

// The browser is replaced behind the lease's back: nothing is executed in the
// new one, and the next call gets one that was leased.
func TestBrowserReplaced(t *testing.T) {
	c := browserSetting(t).start(t)
	c.initialize()
	c.works("list_pages", nil)
	box, port := c.boxID(), c.controlPort()
	c.signalBrowser("KILL")
	// What is started while init still ends the leased one's processes ends with them, so that one try may not do.
	tries := 0
	wait.Until(t, func() bool {
		if exec.Command("docker", "exec", box, "sh", "-c", "grep -qi ':"+hexPort(t, port)+" .* 0A ' /proc/net/tcp").Run() == nil {
			return true
		}
		if tries++; tries%20 == 1 {
			_ = exec.Command("docker", "exec", "-d", box, "/usr/lib/chromium/chromium-headless-shell", "--remote-debugging-port="+port,
				"--user-data-dir=/tmp/other"+strconv.Itoa(tries), "--disable-dev-shm-usage", "data:text/html,<title>a stranger</title>").Run()
		}
		return false
	}, "the stranger listens")
	refused := c.browserTool("list_pages", nil).tool(t)
	require.True(t, refused.IsError)
	require.Equal(t, "browser_lease_replaced", refused.StructuredContent.Code)
	require.False(t, refused.StructuredContent.OutcomeUnknown)
	require.True(t, refused.StructuredContent.FailClosed)
	require.Equal(t, "reacquire_before_next_call", refused.StructuredContent.Action)
	require.Contains(t, refused.text(), "call was not executed")
	require.NotContains(t, c.works("list_pages", nil), "stranger")
}

// The browser freezes: a deadline ends the call, and the next one works.
func TestBrowserFrozen(t *testing.T) {
	c := browserSetting(t, "--timeout", "20").start(t)
	c.initialize()
	c.works("list_pages", nil)
	call := c.startTool("evaluate_script", map[string]any{"pageId": 1, "function": `async () => { await new Promise(r => setTimeout(r, 50000)) }`})
	c.letItRun(time.Second)
	c.signalBrowser("STOP")
	lost := c.answer(call).tool(t)
	require.Equal(t, "browser_lease_replaced", lost.StructuredContent.Code)
	require.True(t, lost.StructuredContent.OutcomeUnknown)
	refused := c.browserTool("list_pages", nil).tool(t) // it waits for the verdict on the frozen one
	require.Equal(t, "browser_lease_replaced", refused.StructuredContent.Code, refused.text())
	require.False(t, refused.StructuredContent.OutcomeUnknown)
	c.works("list_pages", nil)
}

// letItRun lets a call get on its way: nothing tells when it has.
func (c *client) letItRun(d time.Duration) { time.Sleep(d) }

var browserURL = regexp.MustCompile(`browser_url=http://127\.0\.0\.1:(\d+)`)

// controlPort is where the browser listens in its namespace.
func (c *client) controlPort() string {
	c.t.Helper()
	found := browserURL.FindStringSubmatch(c.stderr.String())
	require.NotNil(c.t, found, "the log names the control port")
	return found[1]
}

func hexPort(t *testing.T, port string) string {
	n, err := strconv.Atoi(port)
	require.NoError(t, err)
	return fmt.Sprintf("%04X", n)
}

// A page that reached the control port could drive the browser past every rule:
// it is refused under every name of this machine, as a page, from a page, by a
// redirect and as a socket. That it would be reached otherwise is shown where the
// box is tested.
func TestBrowserControlPort(t *testing.T) {
	app := webPage(t)
	s := browserSetting(t, "--browser_app_port", strconv.Itoa(app))
	c := s.start(t)
	c.initialize()
	page := c.open(host(app))
	port := c.controlPort()
	for _, name := range []string{"127.0.0.1", "localhost", "foo.localhost", "[::ffff:127.0.0.1]", "[::1]", "0.0.0.0", "127.1", "2130706433", "0x7f.1", "127.0.0.2"} {
		address := "http://" + name + ":" + port + "/json/version"
		opened := c.browserTool("new_page", map[string]any{"url": address}).tool(t)
		if !opened.IsError {
			assert.NotContains(t, c.worksOnLast(opened.text()), "webSocketDebuggerUrl", name)
		}
		fetched := c.evaluate(page, `async () => { try { return "got " + await (await fetch("`+address+`")).text() } catch (e) { return "refused " + e } }`)
		assert.Contains(t, fetched, "refused", name)
		opaque := c.evaluate(page, `async () => { try { return "got " + (await fetch("`+address+`", {mode: "no-cors"})).type } catch (e) { return "refused " + e } }`)
		assert.Contains(t, opaque, "refused", name)
		socket := c.evaluate(page, `() => new Promise(r => { try { const s = new WebSocket("ws://`+name+":"+port+`/devtools/browser/x");
			s.onopen = () => r("got"); s.onerror = () => r("refused"); setTimeout(() => r("refused silently"), 5000) } catch (e) { r("refused " + e) } })`)
		assert.Contains(t, socket, "refused", name)
		redirected := c.evaluate(page, `async () => { try { return "got " + await (await fetch("/?to=`+address+`")).text() } catch (e) { return "refused " + e } }`)
		assert.Contains(t, redirected, "refused", name)
	}
	framed := c.evaluate(page, `() => new Promise(r => { const f = document.createElement("iframe"); f.src = "http://127.0.0.1:`+port+`/json/version";
		f.onload = () => { try { r(f.contentDocument ? "same origin" : "refused") } catch (e) { r("refused " + e) } }; document.body.append(f); setTimeout(() => r("refused"), 3000) })`)
	assert.Contains(t, framed, "refused")
	for _, address := range []string{"file:///etc/passwd", "view-source:file:///etc/passwd"} {
		opened := c.browserTool("new_page", map[string]any{"url": address}).tool(t)
		assert.True(t, opened.IsError, "%s: %s", address, opened.text())
	}
	require.Contains(t, c.evaluate(page, `async () => "got " + (await fetch("/")).status`), "got 200", "the control: the application is reached")
}

// With the operator's patterns nothing else opens, and the control port is not
// among what they may name.
func TestBrowserAllowedPatterns(t *testing.T) {
	app := webPage(t)
	c := browserSetting(t, "--browser_app_port", strconv.Itoa(app), "--browser_allowed_url_pattern", host(app)+"*").start(t)
	c.initialize()
	page := c.open(host(app))
	port := c.controlPort()
	for _, address := range []string{"http://127.0.0.1:" + port + "/json/version", "http://localhost:" + port + "/json/version", host(app + 1)} {
		fetched := c.evaluate(page, `async () => { try { return "got " + await (await fetch("`+address+`", {mode: "no-cors"})).type } catch (e) { return "refused " + e } }`)
		assert.Contains(t, fetched, "refused", address)
		opened := c.browserTool("new_page", map[string]any{"url": address}).tool(t)
		if !opened.IsError {
			assert.NotContains(t, c.worksOnLast(opened.text()), "webSocketDebuggerUrl", address)
		}
	}
	s := browserSetting(t, "--browser_allowed_url_pattern", "http://127.0.0.1:*/*")
	refused := s.start(t)
	require.Equal(t, 1, refused.exit())
	require.Contains(t, refused.stderr.String(), "control port")
}

// worksOnLast is the text of the page that was opened last.
func (c *client) worksOnLast(list string) string {
	c.t.Helper()
	found := regexp.MustCompile(`(?m)^(\d+): `).FindAllStringSubmatch(list, -1)
	require.NotEmpty(c.t, found, list)
	n, err := strconv.Atoi(found[len(found)-1][1])
	require.NoError(c.t, err)
	r := c.browserTool("evaluate_script", map[string]any{"pageId": n, "function": "() => document.documentElement.outerText"}).tool(c.t)
	return r.text()
}

// Nothing listens on the application's port: the caller hears it in one line,
// and after it was started the next call works.
func TestBrowserAppPortWithoutServer(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	c := browserSetting(t, "--browser_app_port", strconv.Itoa(port)).start(t)
	c.initialize()
	r := c.browserTool("list_pages", nil).tool(t)
	require.True(t, r.IsError)
	require.Equal(t, "browser_dev_server_unreachable", r.StructuredContent.Code)
	require.Contains(t, r.text(), "dev server not reachable")
	l, err = net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Listener = l
	server.Start()
	defer server.Close()
	c.works("list_pages", nil)
}

// A killed front end leaves neither box nor tool server, at whatever moment.
func TestBrowserFrontEndKilled(t *testing.T) {
	for name, before := range map[string]func(*client){
		"while provisioning": func(c *client) { c.startTool("list_pages", nil) },
		"while leased":       func(c *client) { c.works("list_pages", nil) },
		"during a call": func(c *client) {
			c.works("list_pages", nil)
			c.startTool("evaluate_script", map[string]any{"pageId": 1, "function": `async () => { await new Promise(r => setTimeout(r, 50000)) }`})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := browserSetting(t)
			c := s.start(t)
			c.initialize()
			before(c)
			wait.Until(t, func() bool { return len(s.containers(t, c.cmd.Process.Pid)) == 2 }, "the look sees them")
			require.NoError(t, c.cmd.Process.Kill())
			s.requireNothing(t, c.cmd.Process.Pid)
		})
	}
}
