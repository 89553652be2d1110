package acceptance

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"mcpagents/internal/testkit/wait"

	"github.com/stretchr/testify/require"
)

// maxGrowth is what a front end's memory may grow by over eighty leases, in KiB.
const maxGrowth = 4 << 10

// TestLeaseCycles borrows and gives back a browser a hundred times and looks at
// what is left, and at the front end's memory and descriptors.
func TestLeaseCycles(t *testing.T) {
	helper, tool := fakeBrowserParts(t)
	s := newSetting(t, "local", "")
	b := lender{helper: helper, tool: tool}.borrow(t, s, "", 0, "--browser_idle_timeout", "0.25")
	seen := map[string]bool{}
	memory, descriptors := 0, 0
	for i := range 100 {
		seen[b.look()] = true
		wait.Until(t, func() bool { return len(b.lent()) == 0 })
		if i == 19 {
			memory, descriptors = usage(t, b.cmd.Process.Pid)
		}
	}
	require.Len(t, seen, 100, "each lease is another browser")
	wait.Until(t, func() bool { return len(b.running("fakelease")) == 0 })
	now, open := usage(t, b.cmd.Process.Pid)
	t.Logf("memory %d KiB after 20 leases, %d KiB after 100; descriptors %d, %d", memory, now, descriptors, open)
	require.Less(t, now, memory+maxGrowth, "memory in KiB")
	require.LessOrEqual(t, open, descriptors+1)
	b.begin()
	closeInput(b.client)
	require.Equal(t, 0, b.exit())
	_, l := b.clean(t, wait.Limit)
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
