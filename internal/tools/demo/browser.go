package demo

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// viewport is the browser's window, and so the size of its screenshots.
const viewport = "1280x800"

// minColours is how many colours a picture of the page has at least. A blank one
// has one.
const minColours = 16

// page is what the browser is shown. Its script answers a click and talks on the
// console.
const page = `<!doctype html><html lang="en"><meta charset="utf-8"><title>A page of this machine</title>
<style>body{font:24px sans-serif;margin:60px;background:linear-gradient(#fff,#cde)}button{font:inherit}</style>
<h1>Hello from the host, 你好, こんにちは</h1><button id="go">Press me</button><p id="said">nothing yet</p>
<script>document.getElementById("go").addEventListener("click",()=>{
document.getElementById("said").textContent="pressed";console.log("the button was pressed")})</script>`

// runBrowser is the demo of the browser.
func (d *demo) runBrowser(ctx context.Context) (err error) {
	if err := d.setUp(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(d.dir)) }()
	if err := d.makeBrowserWorkspace(); err != nil {
		return err
	}
	port, stop, err := d.servePage()
	if err != nil {
		return err
	}
	defer stop()
	if err := d.browse(ctx, port); err != nil {
		return err
	}
	if err := d.checkScreenshot(); err != nil {
		return err
	}
	left, err := d.leftSandboxes(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "left behind: %d sandboxes\n", left)
	if left > 0 {
		return errors.New("something was left behind")
	}
	d.printTimes()
	return nil
}

func (d *demo) makeBrowserWorkspace() error {
	ws := d.workspace()
	if err := os.Mkdir(ws, 0o755); err != nil {
		return fmt.Errorf("make a workspace: %w", err)
	}
	if d.owner == os.Getuid() {
		return nil
	}
	return os.Chown(ws, d.owner, d.owner)
}

// servePage serves the page on a free port of loopback.
func (d *demo) servePage() (port int, stop func(), err error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, nil, fmt.Errorf("serve a page on loopback: %w", err)
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(page))
	})}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(l) }()
	port = l.Addr().(*net.TCPAddr).Port
	d.say("serving a page on http://127.0.0.1:%d of this machine", port)
	return port, func() { _ = server.Close(); <-served }, nil
}

// browse starts the front end as an MCP client would and works on the page.
func (d *demo) browse(ctx context.Context, port int) error {
	done := d.stage("starting mcp-agents --provider browser and the DevTools server")
	args := []string{"--provider", "browser", "--workspace", d.workspace(), "--browser_network", "none",
		"--browser_app_port", strconv.Itoa(port), "--browser_viewport", viewport}
	cmd := exec.Command(d.self, args...)
	cmd.Dir, cmd.Env, cmd.Stderr = d.workspace(), os.Environ(), prefixed{d.out}
	client := mcp.NewClient(&mcp.Implementation{Name: "demo", Version: "1"}, &mcp.ClientOptions{})
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return fmt.Errorf("connect to mcp-agents: %w", err)
	}
	d.frontEnd = cmd.Process.Pid
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		return errors.Join(fmt.Errorf("list tools: %w", err), session.Close())
	}
	done()
	d.say("%d tools", len(tools.Tools))
	workErr := (&visit{demo: d, session: session, port: port}).work(ctx)
	if workErr == nil {
		workErr = d.showSandbox(ctx, cmd.Process.Pid)
	}
	done = d.stage("closing the connection: browser and DevTools server go with it")
	if err := session.Close(); err != nil {
		return errors.Join(workErr, fmt.Errorf("close the connection: %w", err))
	}
	done()
	return workErr
}

// visit is what a client does with the page.
type visit struct {
	*demo
	session *mcp.ClientSession
	port    int
	page    int // the DevTools server's number of it
}

func (v *visit) work(ctx context.Context) error {
	address := fmt.Sprintf("http://127.0.0.1:%d/", v.port)
	opened, err := v.call(ctx, "borrowing a browser and opening the page", "new_page", map[string]any{"url": address})
	if err != nil {
		return err
	}
	if v.page, err = pageOf(opened, address); err != nil {
		return err
	}
	snapshot, err := v.call(ctx, "taking a snapshot", "take_snapshot", nil)
	if err != nil {
		return err
	}
	button, err := match(snapshot, `uid=(\S+) button "Press me"`)
	if err != nil {
		return err
	}
	if _, err := v.call(ctx, "clicking the button", "click", map[string]any{"uid": button}); err != nil {
		return err
	}
	for _, step := range []struct {
		stage, tool string
		args        map[string]any
		want        string // in the answer
	}{
		{"evaluating a script", "evaluate_script", map[string]any{"function": `() => document.getElementById("said").textContent`}, "pressed"},
		{"reading the console", "list_console_messages", nil, "the button was pressed"},
		{"taking a screenshot", "take_screenshot", map[string]any{"filePath": v.screenshot()}, filepath.Base(v.screenshot())},
		{"recording a performance trace", "performance_start_trace", map[string]any{"reload": true, "autoStop": true,
			"filePath": v.trace()}, "trace"},
	} {
		text, err := v.call(ctx, step.stage, step.tool, step.args)
		if err != nil {
			return err
		}
		if !strings.Contains(text, step.want) {
			return fmt.Errorf("%s answered without %q: %s", step.tool, step.want, text)
		}
	}
	info, err := os.Stat(v.trace())
	if err != nil {
		return fmt.Errorf("the trace is not in the workspace: %w", err)
	}
	v.say("the trace has %d bytes", info.Size())
	return nil
}

// call calls a tool of the page and returns its text.
func (v *visit) call(ctx context.Context, stage, tool string, args map[string]any) (string, error) {
	defer v.stage(stage)()
	if args == nil {
		args = map[string]any{}
	}
	if tool != "new_page" {
		args["pageId"] = v.page
	}
	result, err := v.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return "", fmt.Errorf("call %s: %w", tool, err)
	}
	var text []string
	for _, c := range result.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			text = append(text, t.Text)
		}
	}
	all := strings.Join(text, "\n")
	if result.IsError {
		return "", fmt.Errorf("%s answered with an error: %s", tool, all)
	}
	return all, nil
}

// pageOf finds the number of the page at an address in a list of pages.
func pageOf(list, address string) (int, error) {
	number, err := match(list, `(\d+): [^\n]*`+regexp.QuoteMeta(address))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(number)
}

func match(text, pattern string) (string, error) {
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		return "", fmt.Errorf("nothing matches %s in: %s", pattern, text)
	}
	return found[1], nil
}

func (d *demo) screenshot() string { return filepath.Join(d.workspace(), "screenshot.png") }
func (d *demo) trace() string      { return filepath.Join(d.workspace(), "trace.json.gz") }

// checkScreenshot checks whose the picture is, its size, and that it shows
// something; and moves it to where it stays.
func (d *demo) checkScreenshot() error {
	owner, err := ownerOf(d.screenshot())
	if err != nil {
		return fmt.Errorf("the screenshot is not in the workspace: %w", err)
	}
	if owner != d.owner {
		return fmt.Errorf("the screenshot belongs to uid %d, the workspace to %d", owner, d.owner)
	}
	f, err := os.Open(d.screenshot())
	if err != nil {
		return fmt.Errorf("open the screenshot: %w", err)
	}
	defer f.Close()
	picture, err := png.Decode(f)
	if err != nil {
		return fmt.Errorf("read the screenshot: %w", err)
	}
	size := picture.Bounds().Size()
	if n := colours(picture); n < minColours {
		return fmt.Errorf("the screenshot of %dx%d has %d colours: it is blank", size.X, size.Y, n)
	}
	stays, err := os.CreateTemp("", "mcp-agents-demo-browser-*.png")
	if err == nil {
		err = errors.Join(stays.Close(), os.Rename(d.screenshot(), stays.Name()))
	}
	if err != nil {
		return fmt.Errorf("keep the screenshot: %w", err)
	}
	fmt.Fprintf(d.out, "\nscreenshot of %dx%d: %s\n", size.X, size.Y, stays.Name())
	return nil
}

// colours counts the colours of a picture, up to minColours.
func colours(picture image.Image) int {
	seen := map[[3]uint32]bool{}
	b := picture.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X && len(seen) < minColours; x++ {
			r, g, b, _ := picture.At(x, y).RGBA()
			seen[[3]uint32{r, g, b}] = true
		}
	}
	return len(seen)
}
