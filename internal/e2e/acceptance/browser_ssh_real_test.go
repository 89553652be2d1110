package acceptance

import (
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// realBrowser is the box's browser: Debian's, which refuses to run as root with
// its own sandbox. Without it, or without the tool server, the test is skipped.
func (x *sshBox) realBrowser(t *testing.T) {
	t.Helper()
	x.tool = os.Getenv("MCP_AGENTS_TEST_CHROME_DEVTOOLS")
	chromium, err := exec.LookPath("chromium-headless-shell")
	if x.tool == "" || err != nil {
		t.Skip("no real parts: install chromium-headless-shell, and name chrome-devtools-mcp in MCP_AGENTS_TEST_CHROME_DEVTOOLS")
	}
	flags := ""
	if os.Getuid() == 0 {
		flags = "--no-sandbox"
	}
	require.NoError(t, os.WriteFile(filepath.Join(x.dir, "chromium-headless-shell"), []byte("#!/bin/sh -e\n"+chromium+" "+flags+` "$@"`+"\n"), 0o755))
}

// The real tool server and the real browser on this machine, through the
// documented helper.
func TestLeaseOverSSHRealParts(t *testing.T) {
	x := newSSHBox(t)
	x.realBrowser(t)
	port := webPage(t)
	b := x.borrow(t, "--browser_app_port", strconv.Itoa(port), "--browser_viewport", "800x600")
	page := b.open(host(port))
	b.works("click", map[string]any{"pageId": page, "uid": b.uid(page, `button "Press"`)})
	require.Contains(t, b.evaluate(page, `() => document.getElementById("p").textContent`), "pressed")
	picture := filepath.Join(x.dir, "page.png") // without roots the tool server writes to temporary files only
	b.works("take_screenshot", map[string]any{"pageId": page, "filePath": picture})
	f, err := os.Open(picture)
	require.NoError(t, err)
	defer f.Close()
	shot, err := png.Decode(f)
	require.NoError(t, err)
	require.Greater(t, shot.Bounds().Dx(), 700)

	control := regexp.MustCompile(`browser_url=http://127\.0\.0\.1:(\d+)`).FindStringSubmatch(b.stderr.String())
	require.NotNil(t, control)
	for _, address := range []string{"http://127.0.0.1:", "http://foo.localhost:", "http://[::1]:", "http://0.0.0.0:"} {
		refused := b.browserTool("new_page", map[string]any{"url": address + control[1] + "/json/version"}).tool(t)
		require.True(t, refused.IsError, "%s: %s", address, refused.text())
	}

	call := b.startTool("evaluate_script", map[string]any{"pageId": page, "function": "() => new Promise(done => setTimeout(done, 5000))"})
	b.letItRun(time.Second)
	b.killOne("/usr/lib/chromium/chromium-headless-shell "+browserFlags(), syscall.SIGKILL)
	lost := b.answer(call).tool(t)
	require.Equal(t, "browser_lease_replaced", lost.StructuredContent.Code, lost.text())
	require.True(t, lost.StructuredContent.OutcomeUnknown)
	b.open(host(port)) // in another browser
	b.begin()
	closeInput(b.client)
	require.Equal(t, 0, b.exit())
	x.requireClean(t, b)
}

// browserFlags begin the command line of the browser itself, and of no script
// that starts it.
func browserFlags() string {
	if os.Getuid() == 0 {
		return "--no-sandbox --headless"
	}
	return "--headless"
}
