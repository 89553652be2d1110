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
)

// browserFault is one row of the table for the provider browser with a lease
// helper and a tool server on this machine.
type browserFault struct {
	name   string
	lends  string // what the helper does at acquire; empty lends a browser
	times  int
	steps  string          // of the call that is under way; empty: the call looks which browser is there
	meets  bool            // the fault is made while a call is under way in a leased browser
	early  bool            // ... while a browser is got
	do     func(*borrower) // the fault; nil: the helper makes it
	args   []string
	told   string        // pattern of what the client was told; empty: nothing
	status int           // of the front end
	over   bool          // the front end ends by the fault; otherwise the next call works
	longer time.Duration // what the time to clean may take
}

const (
	stalling = `[{"do":"stall"}]`
	slowly   = `[{"do":"wait","ms":1500}]`
)

// browserFaults are those of the helper, the browser, the tool server and the
// front end. A helper's browser ends with its front end because the helper sees
// to it, as the documented one does.
var browserFaults = []browserFault{
	{name: "helper hangs", lends: "hang", args: []string{"--timeout", "19"}, told: "browser_provisioning_failed .*timed out"},
	{name: "helper is killed", lends: "die", told: "browser_provisioning_failed .*ended by a signal"},
	{name: "helper prints garbage", lends: "garbage", told: "browser_provisioning_failed .*malformed or mismatched"},
	{name: "helper prints 20 MB", lends: "flood", told: "browser_provisioning_failed .*more than 10 MiB"},
	{name: "control port taken once", lends: "taken", times: 1, told: "^ .*/devtools/browser/"},
	{name: "control port always taken", lends: "taken", times: 1 << 20, told: "browser_provisioning_failed .*3 attempts"},
	{name: "tool server is killed during a call", steps: stalling, meets: true, do: (*borrower).killTool, over: true, status: 137,
		told: "browser_lease_replaced .*never blindly replay"},
	{name: "tool server exits during a call", steps: `[{"do":"wait","ms":800},{"do":"exit","code":3}]`, meets: true, do: func(*borrower) {}, over: true, status: 3,
		told: "browser_lease_replaced .*never blindly replay"},
	{name: "tool server writes half a result and dies", steps: `[{"do":"say","text":"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{"},{"do":"wait","ms":800},{"do":"exit","code":3}]`,
		meets: true, do: func(*borrower) {}, over: true, status: 3, told: "browser_lease_replaced .*never blindly replay"},
	{name: "tool server hangs", steps: stalling, meets: true, do: func(*borrower) {}, args: []string{"--timeout", "2"},
		told: "browser_lease_replaced .*hard timeout"},
	{name: "tool server answers with 20 MB", steps: `[{"do":"flood","bytes":20000000}]`, told: "browser_lease_replaced .*longer than 10 MiB"},
	{name: "browser is killed during a call", steps: slowly, meets: true, do: (*borrower).killBrowser, told: "browser_lease_replaced .*never blindly replay"},
	{name: "browser freezes during a call", steps: slowly, meets: true, do: (*borrower).freezeBrowser, told: "browser_lease_replaced .*never blindly replay"},
	{name: "client leaves while a browser is got", lends: "hang", early: true, do: func(b *borrower) { closeInput(b.client) }, over: true, told: "^-32001|^-$"},
	{name: "client leaves during a call", steps: stalling, meets: true, do: func(b *borrower) { closeInput(b.client) }, over: true, told: "browser_lease_replaced|^-$"},
	{name: "front end gets SIGTERM while a browser is got", lends: "hang", early: true, do: sends(syscall.SIGTERM), over: true, status: 143, told: "-32001"},
	{name: "front end gets SIGTERM during a call", steps: stalling, meets: true, do: sends(syscall.SIGTERM), over: true, status: 143, told: "browser_lease_replaced"},
	{name: "front end gets SIGKILL while a browser is got", lends: "hang", early: true, do: sends(syscall.SIGKILL), over: true, status: 137},
	{name: "front end gets SIGKILL during a call", steps: stalling, meets: true, do: sends(syscall.SIGKILL), over: true, status: 137},
}

// borrower is a client of a front end that borrows browsers from a fakelease.
type borrower struct {
	*client
	leases string // directory of them
}

// buildOnce builds a program of ours for tests, once for all of them.
func buildOnce(t *testing.T, name string) string {
	t.Helper()
	build := func() (string, error) {
		path := filepath.Join(built.dir, name)
		out, err := exec.Command("go", "build", "-o", path, "mcpagents/internal/"+name).CombinedOutput()
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

// borrow starts a front end whose helper does what the scenario says.
func borrow(t *testing.T, s *setting, helper, tool, scenario string, times int, args ...string) *borrower {
	t.Helper()
	b := &borrower{leases: filepath.Join(s.workspace, "leases")}
	require.NoError(t, os.Mkdir(b.leases, 0o755))
	text, err := json.Marshal(map[string]any{"Dir": b.leases, "Acquire": scenario, "Times": times})
	require.NoError(t, err)
	s.env = append(s.env, "FAKE_LEASE="+string(text))
	s.args = append([]string{"--provider", "browser", "--browser_lease_command", helper, "--browser_command", tool}, args...)
	b.client = s.start(t)
	b.initialize()
	b.answer(b.request("tools/list", map[string]any{}))
	return b
}

// makeBrowserFaults adds the rows of browser to the table.
func makeBrowserFaults(t *testing.T, table *faultTable, runtime string) {
	if runtime != "local" {
		return // the browser in a container has rows of its own
	}
	helper, tool := fakeBrowserParts(t)
	for _, f := range browserFaults {
		t.Run("browser "+f.name, func(t *testing.T) {
			t.Parallel()
			r := table.add(runtime, "browser: "+f.name)
			for range *rounds {
				f.round(t, r, helper, tool)
			}
			require.Zero(t, r.left.count(), r.left.String())
		})
	}
}

// round makes the fault once.
func (f browserFault) round(t *testing.T, r *row, helper, tool string) {
	s := newSetting(t, "local", "")
	r.rounds++
	b := borrow(t, s, helper, tool, f.lends, f.times, f.args...)
	call := b.call(f.steps)
	switch {
	case f.meets:
		require.Eventually(t, func() bool { return len(b.lent()) == 1 }, 20*time.Second, 10*time.Millisecond)
		b.waitForCall()
	case f.early:
		require.Eventually(t, func() bool { return len(b.running("acquire")) == 1 }, 20*time.Second, 10*time.Millisecond)
	}
	b.begin()
	if f.do != nil {
		require.NotEmpty(t, s.marked(b.cmd.Process.Pid), "the observer must see what runs, or it could not see what is left")
		f.do(b)
	}
	told := ""
	if !f.over {
		told = b.toldOf(b.answer(call))
		require.Regexp(t, f.told, told)
		if f.lends == "" { // the fault cost its call and nothing else
			require.Contains(t, b.answer(b.call("")).text(), "/devtools/browser/")
		}
		b.begin()
		closeInput(b.client)
	}
	took, l := b.clean(t, *slack+f.longer)
	status := b.exit(20 * time.Second)
	if f.over {
		told = b.lastWords(call)
		require.Regexp(t, f.told, told)
	}
	r.record(took, l, short(told))
	require.Zero(t, l.count(), l.String())
	require.Equal(t, f.status, status, "exit status")
}

// call begins a call.
func (b *borrower) call(steps string) int {
	if steps == "" {
		return b.request("tools/call", map[string]any{"name": "look", "arguments": map[string]any{}})
	}
	return b.request("tools/call", map[string]any{"name": "run", "arguments": map[string]any{"steps": json.RawMessage(steps)}})
}

// waitForCall waits until the tool server has had time to get the call that
// waited for a browser: nothing tells.
func (b *borrower) waitForCall() {
	select {
	case <-time.After(300 * time.Millisecond):
	case <-b.exited:
	}
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

// clean waits until no process and no lease is left. A lease is to a helper what
// a container is to an engine, and stands in its column.
func (b *borrower) clean(t *testing.T, limit time.Duration) (time.Duration, left) {
	for {
		l := left{containers: b.lent(), processes: b.s.marked(b.cmd.Process.Pid)}
		if took := time.Since(b.since); l.count() == 0 || took > limit {
			return took, l
		}
		time.Sleep(10 * time.Millisecond) // the machine does not tell when something went
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

func (b *borrower) killTool() { b.killOne("--browserUrl", syscall.SIGKILL) }

// killBrowser kills the browser behind the lease's back. Who keeps the leases
// sees that: its file goes with it.
func (b *borrower) killBrowser() {
	b.killOne("fakelease browser", syscall.SIGKILL)
	for _, name := range b.lent() {
		require.NoError(b.t, os.Remove(filepath.Join(b.leases, strings.TrimPrefix(name, "lease "))))
	}
}

func (b *borrower) freezeBrowser() { b.killOne("fakelease browser", syscall.SIGSTOP) }

func sends(sig syscall.Signal) func(*borrower) {
	return func(b *borrower) { _ = b.cmd.Process.Signal(sig) }
}

// maxGrowth is what a front end's memory may grow by over eighty leases, in KiB.
const maxGrowth = 4 << 10

// TestLeaseCycles borrows and gives back a browser a hundred times and looks at
// what is left, and at the front end's memory and descriptors.
func TestLeaseCycles(t *testing.T) {
	helper, tool := fakeBrowserParts(t)
	s := newSetting(t, "local", "")
	b := borrow(t, s, helper, tool, "", 0, "--browser_idle_timeout", "0.25")
	seen := map[string]bool{}
	memory, descriptors := 0, 0
	for i := range 100 {
		seen[b.look()] = true
		require.Eventually(t, func() bool { return len(b.lent()) == 0 }, 20*time.Second, 5*time.Millisecond)
		if i == 19 {
			memory, descriptors = usage(t, b.cmd.Process.Pid)
		}
	}
	require.Len(t, seen, 100, "each lease is another browser")
	require.Eventually(t, func() bool { return len(b.running("fakelease")) == 0 }, 10*time.Second, 10*time.Millisecond)
	now, open := usage(t, b.cmd.Process.Pid)
	t.Logf("memory %d KiB after 20 leases, %d KiB after 100; descriptors %d, %d", memory, now, descriptors, open)
	require.Less(t, now, memory+maxGrowth, "memory in KiB")
	require.LessOrEqual(t, open, descriptors+1)
	b.begin()
	closeInput(b.client)
	require.Equal(t, 0, b.exit(20*time.Second))
	_, l := b.clean(t, 10*time.Second)
	require.Zero(t, l.count(), l.String())
}

// look asks which browser is there. On a machine that is slower than the idle
// time a browser may be given back under the call, which then says so.
func (b *borrower) look() string {
	b.t.Helper()
	for range 10 {
		r := b.answer(b.call(""))
		if told := b.toldOf(r); !strings.HasPrefix(told, "browser_lease_replaced") {
			require.Contains(b.t, told, "/devtools/browser/")
			return told
		}
	}
	require.FailNow(b.t, "each browser was given back under its call")
	return ""
}

// usage is a process's resident memory in KiB and its open descriptors.
func usage(t *testing.T, pid int) (kib, descriptors int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	_, err = fmt.Sscan(rest, &kib)
	require.NoError(t, err)
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	require.NoError(t, err)
	return kib, len(fds)
}
