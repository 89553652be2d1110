package acceptance

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/testkit/frontend"
	"mcpagents/internal/testkit/images"
)

// borrower is a client of a front end that borrows browsers.
type borrower struct {
	*client
	leases  string // directory of a helper's
	browser string // is in the command line of a browser
	gets    string // ... and in that of the process by which one is got
}

// buildOnce builds a program of ours for tests, once for all of them.
func buildOnce(t *testing.T, name string) string {
	t.Helper()
	build := func() (string, error) {
		path := filepath.Join(built.dir, name)
		out, err := exec.Command("go", "build", "-o", path, "mcpagents/internal/testkit/"+name).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("build %s: %w: %s", name, err, out)
		}
		return path, nil
	}
	once, _ := builds.LoadOrStore(name, sync.OnceValues(build))
	path, err := once.(func() (string, error))()
	require.NoError(t, err)
	return path
}

var builds sync.Map // name → func() (string, error)

// fakeBrowserParts are the helper and the tool server.
func fakeBrowserParts(t *testing.T) (helper, tool string) {
	t.Helper()
	return buildOnce(t, "fakelease"), buildOnce(t, "fakedevtools")
}

// fakeBrowserImage is an image with a fake tool server and a fake Chromium, each
// where its own image has the real one.
func fakeBrowserImage(t *testing.T) string {
	t.Helper()
	const tag = "mcp-agents-test/fakebrowser:latest"
	base := images.Codex(t)
	dir, remove, err := frontend.Programs("mcp-agents-fakebrowser-", map[string]string{
		"chrome-devtools-mcp": "mcpagents/internal/testkit/fakedevtools", "chromium-headless-shell": "mcpagents/internal/testkit/fakechromium"})
	require.NoError(t, err)
	defer remove()
	dockerfile := "ARG BASE\nFROM $BASE\nCOPY chrome-devtools-mcp /usr/local/bin/\nCOPY chromium-headless-shell /usr/lib/chromium/\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(dockerfile), 0o644))
	output(t, "docker", "build", "-q", "--build-arg", "BASE="+base, "-t", tag, dir)
	return tag
}

// lender is what lends browsers: a helper on this machine beside a tool server,
// or an image from which a box and a tool server are made.
type lender struct{ helper, tool, image string }

// flags are the front end's.
func (from lender) flags() []string {
	if from.image != "" {
		return []string{"--provider", "browser", "--browser_image", from.image, "--browser_network", "none"}
	}
	return []string{"--provider", "browser", "--browser_lease_command", from.helper, "--browser_command", from.tool}
}

// borrow starts a front end. At acquire a helper does what the scenario says; of
// a box only "hang" is known.
func (from lender) borrow(t *testing.T, s *setting, scenario string, times int, args ...string) *borrower {
	t.Helper()
	b := &borrower{leases: filepath.Join(s.workspace, "leases"), browser: "fakelease browser", gets: "acquire"}
	if from.image != "" {
		b.browser, b.gets = "--remote-debugging-port", "--remote-debugging-port"
		// No variable of the operator's choice gets to a browser: this one shows whose it is.
		s.env = append(s.env, "NO_PROXY=ACCEPTANCE_RUN="+s.run)
		s.args = append(from.flags(), "--stop_grace", fmt.Sprint(grace.Seconds()))
		if scenario == "hang" {
			s.args = append(s.args, "--browser_viewport", "1x1")
		}
	} else {
		require.NoError(t, os.Mkdir(b.leases, 0o755))
		text, err := json.Marshal(map[string]any{"Dir": b.leases, "Acquire": scenario, "Times": times})
		require.NoError(t, err)
		s.env = append(s.env, "FAKE_LEASE="+string(text))
		s.args = from.flags()
	}
	s.args = append(s.args, args...)
	b.client = s.start(t)
	b.initialize()
	b.answer(b.request("tools/list", map[string]any{}))
	return b
}

// call begins a call. One with steps writes the file at-work when the tool
// server has got it.
func (b *borrower) call(steps string) int {
	if steps == "" {
		return b.request("tools/call", map[string]any{"name": "look", "arguments": map[string]any{}})
	}
	return b.request("tools/call", map[string]any{"name": "run",
		"arguments": map[string]any{"steps": json.RawMessage(script(`{"do":"mark","text":"at-work"}`, steps))}})
}

// goOn lets a call go on that waits for the fault.
func (b *borrower) goOn() {
	require.NoError(b.t, os.WriteFile(filepath.Join(b.s.workspace, "go-on"), nil, 0o644))
}

// toldOf is the code and the last text of an answer.
func (b *borrower) toldOf(r reply) string {
	if r.Error != nil {
		return fmt.Sprintf("%d %s", r.Error.Code, r.Error.Message)
	}
	var result struct {
		Content    []struct{ Text string }
		Structured struct{ Code string } `json:"structuredContent"`
	}
	require.NoError(b.t, json.Unmarshal(r.Result, &result))
	text := ""
	if n := len(result.Content); n > 0 {
		text = result.Content[n-1].Text
	}
	return result.Structured.Code + " " + text
}

// lastWords is what the client was told of a call by a front end that ended.
func (b *borrower) lastWords(call int) string {
	for line := range b.lines {
		_, _ = b.note(line)
	}
	if r, ok := b.answers[float64(call)]; ok {
		return b.toldOf(r)
	}
	return "-"
}

// short is what the table shows of it.
func short(told string) string {
	code, _, _ := strings.Cut(told, " ")
	if code == "" {
		return "the browser"
	}
	return code
}

// lent lists the leases that stand.
func (b *borrower) lent() []string {
	entries, _ := os.ReadDir(b.leases)
	var names []string
	for _, e := range entries {
		names = append(names, "lease "+e.Name())
	}
	return names
}

// running lists the front end's processes whose command line has the word.
func (b *borrower) running(word string) []string {
	var found []string
	for _, p := range b.s.marked(b.cmd.Process.Pid) {
		if strings.Contains(p, word) {
			found = append(found, p)
		}
	}
	return found
}

// there is what there is. A lease is to a helper what a container is to
// an engine, and stands in its column.
func (b *borrower) there(t *testing.T) left {
	t.Helper()
	l := b.s.look(t, b.cmd.Process.Pid)
	if b.s.runtime == "local" {
		l.containers = b.lent()
	}
	return l
}

// requireOne looks that there is one browser and one tool server to drive it, and
// nothing of earlier ones.
func (b *borrower) requireOne() {
	b.t.Helper()
	want := 1 // lease
	if b.s.runtime == "docker" {
		want = 2 // the box and the tool server's container
	}
	require.Len(b.t, b.there(b.t).containers, want)
	for _, word := range []string{b.browser, toolServer} {
		require.Len(b.t, b.running(word), 1, word)
	}
}

// limit is what the end of everything may take, and longer. A helper is left no
// grace.
func (b *borrower) limit(longer time.Duration) time.Duration {
	if b.s.runtime == "docker" {
		longer += grace
	}
	return b.s.limit(longer)
}

// clean waits until nothing is left.
func (b *borrower) clean(t *testing.T, limit time.Duration) (time.Duration, left) {
	for {
		l := b.there(t)
		if took := time.Since(b.since); l.count() == 0 || took > limit {
			return took, l
		}
		time.Sleep(lookInterval) // the machine does not tell when something went
	}
}

func (b *borrower) killOne(word string, sig syscall.Signal) {
	b.t.Helper()
	found := b.running(word)
	require.Len(b.t, found, 1, word)
	pid, _, _ := strings.Cut(found[0], " ")
	n, err := strconv.Atoi(pid)
	require.NoError(b.t, err)
	require.NoError(b.t, syscall.Kill(n, sig))
}

// toolServer is in the command line of a tool server.
const toolServer = "--browserUrl"

func (b *borrower) killTool() { b.killOne(toolServer, syscall.SIGKILL) }

// killBrowser kills the browser behind the lease's back. Who keeps a helper's
// leases sees that: its file goes with it.
func (b *borrower) killBrowser() {
	b.killOne(b.browser, syscall.SIGKILL)
	for _, name := range b.lent() {
		require.NoError(b.t, os.Remove(filepath.Join(b.leases, strings.TrimPrefix(name, "lease "))))
	}
	b.goOn()
}

func (b *borrower) freezeBrowser() {
	b.killOne(b.browser, syscall.SIGSTOP)
	b.goOn()
}

// killBox kills the container that holds the browser and the namespace.
func (b *borrower) killBox() {
	output(b.t, "docker", "kill", b.boxID())
	b.goOn()
}

// killToolBox kills the container of the tool server.
func (b *borrower) killToolBox() { output(b.t, "docker", "kill", b.containerOf("browser")) }

func leaves(b *borrower) { closeInput(b.client) }

func sends(sig syscall.Signal) func(*borrower) {
	return func(b *borrower) { _ = b.cmd.Process.Signal(sig) }
}
