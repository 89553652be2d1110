package acceptance

import (
	"syscall"
	"testing"
	"time"

	"mcpagents/internal/testkit/wait"

	"github.com/stretchr/testify/require"
)

// browserFault is one row of the table for the provider browser: on the local
// runtime with a lease helper and a tool server on this machine, on docker with
// the embedded lease, whose box and tool server are containers.
type browserFault struct {
	name   string
	on     string // the only runtime that it is made on; empty: both
	lends  string // what the helper does at acquire; empty lends a browser
	times  int
	steps  string          // of the call that is under way; empty: the call looks which browser is there
	meets  bool            // the fault is made while a call is under way in a leased browser
	early  bool            // ... while a browser is got
	do     func(*borrower) // the fault; nil: the helper makes it
	args   []string
	after  func(*borrower) // once all is clean, before the end is waited for
	longer time.Duration   // what the time to clean may take
	told   string          // pattern of what the client was told; empty: nothing
	status int             // of the front end
	over   bool            // the front end ends by the fault; otherwise the next call works
}

// browserFaults are those of the helper, the browser, the tool server, the box
// and the front end. A helper's browser ends with its front end because the
// helper sees to it, as the documented one does.
var browserFaults = []browserFault{
	{name: "helper hangs", on: "local", lends: "hang", args: []string{"--timeout", "19"}, told: "browser_provisioning_failed .*timed out"},
	{name: "helper is killed", on: "local", lends: "die", told: "browser_provisioning_failed .*ended by a signal"},
	{name: "helper prints garbage", on: "local", lends: "garbage", told: "browser_provisioning_failed .*malformed or mismatched"},
	{name: "helper prints 20 MB", on: "local", lends: "flood", told: "browser_provisioning_failed .*more than 10 MiB"},
	{name: "control port taken once", on: "local", lends: "taken", times: 1, told: "^ .*/devtools/browser/"},
	{name: "control port always taken", on: "local", lends: "taken", times: 1 << 20, told: "browser_provisioning_failed .*3 attempts"},
	{name: "tool server is killed during a call", steps: stall, meets: true, do: (*borrower).killTool, over: true, status: 137, told: unknownOutcome},
	{name: "tool server exits during a call", steps: untilFault + "," + exit3, meets: true, do: (*borrower).goOn, over: true, status: 3, told: unknownOutcome},
	{name: "tool server writes half a result and dies", on: "local",
		steps: `{"do":"say","text":"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{"},` + untilFault + "," + exit3,
		meets: true, do: (*borrower).goOn, over: true, status: 3, told: unknownOutcome},
	{name: "tool server hangs", steps: stall, meets: true, do: func(*borrower) {}, args: []string{"--timeout", "2"},
		told: "browser_lease_replaced .*hard timeout"},
	{name: "tool server answers with 20 MB", on: "local", steps: `{"do":"flood","bytes":20000000}`, told: "browser_lease_replaced .*longer than 10 MiB"},
	{name: "browser is killed during a call", steps: untilFault, meets: true, do: (*borrower).killBrowser, told: unknownOutcome},
	{name: "browser freezes during a call", steps: untilFault, meets: true, do: (*borrower).freezeBrowser, told: unknownOutcome},
	{name: "box is killed during a call", on: "docker", steps: untilFault, meets: true, do: (*borrower).killBox, told: unknownOutcome},
	{name: "box is killed while a browser is got", on: "docker", lends: "hang", early: true, do: (*borrower).killBox, told: "browser_provisioning_failed"},
	{name: "tool server's container is killed during a call", on: "docker", steps: stall, meets: true, do: (*borrower).killToolBox, over: true, status: 1,
		told: unknownOutcome},
	{name: "front end gets SIGSTOP during a call, later SIGKILL", on: "docker", steps: stall, meets: true, do: sends(syscall.SIGSTOP), args: shortLived,
		longer: shortLifeline, after: sends(syscall.SIGKILL), over: true, status: 137},
	{name: "client leaves while a browser is got", lends: "hang", early: true, do: leaves, over: true, told: "^-32001|^-$"},
	{name: "client leaves during a call", steps: stall, meets: true, do: leaves, over: true, told: "browser_lease_replaced|^-$"},
	{name: "front end gets SIGTERM while a browser is got", lends: "hang", early: true, do: sends(syscall.SIGTERM), over: true, status: 143, told: "-32001"},
	{name: "front end gets SIGTERM during a call", steps: stall, meets: true, do: sends(syscall.SIGTERM), over: true, status: 143, told: "browser_lease_replaced"},
	{name: "front end gets SIGKILL while a browser is got", lends: "hang", early: true, do: sends(syscall.SIGKILL), over: true, status: 137},
	{name: "front end gets SIGKILL during a call", steps: stall, meets: true, do: sends(syscall.SIGKILL), over: true, status: 137},
}

const (
	untilFault     = `{"do":"until","text":"go-on"}` // written once the fault was made
	unknownOutcome = "browser_lease_replaced .*never blindly replay"
)

// makeBrowserFaults adds the rows of browser to the table.
func makeBrowserFaults(t *testing.T, table *faultTable, runtime string) {
	var from lender
	if runtime == "docker" {
		from.image = fakeBrowserImage(t)
		start := fault{name: "browser: front end gets SIGKILL at five points of its start", points: 5, args: from.flags()}
		if !leftOut(runtime, start.name) {
			t.Run("browser front end gets SIGKILL at its start", func(t *testing.T) {
				t.Parallel()
				start.row(t, table, runtime, from.image)
			})
		}
	} else {
		from.helper, from.tool = fakeBrowserParts(t)
	}
	for _, f := range browserFaults {
		if f.on != "" && f.on != runtime || leftOut(runtime, "browser: "+f.name) {
			continue
		}
		t.Run("browser "+f.name, func(t *testing.T) {
			t.Parallel()
			r := table.add(runtime, "browser: "+f.name)
			for range *rounds {
				f.round(t, r, runtime, from)
			}
			require.Zero(t, r.left.count(), r.left.String())
		})
	}
}

// round makes the fault once.
func (f browserFault) round(t *testing.T, r *row, runtime string, from lender) {
	s := newSetting(t, runtime, from.image)
	r.rounds++
	b := from.borrow(t, s, f.lends, f.times, f.args...)
	call := b.call(f.steps)
	switch {
	case f.meets:
		wait.Until(t, func() bool { return exists(s.workspace, "at-work") })
		b.requireOne()
	case f.early:
		wait.Until(t, func() bool { return len(b.running(b.gets)) == 1 })
		if runtime == "docker" {
			require.Len(t, b.there(t).containers, 2)
		}
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
			b.requireOne()
		}
		b.begin()
		closeInput(b.client)
	}
	limit := b.limit(f.longer)
	took, l := b.clean(t, limit)
	if f.after != nil {
		f.after(b)
	}
	status := b.exit()
	if f.over {
		told = b.lastWords(call)
		require.Regexp(t, f.told, told)
	}
	r.record(took, l, short(told))
	require.Zero(t, l.count(), l.String())
	require.Less(t, took, limit, "time to clean")
	require.Equal(t, f.status, status, "exit status")
}
