package acceptance

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"
)

// grace is the --stop_grace of every front end here.
const grace = time.Second

// fault is one row of the table: a front end with a CLI that was told how to
// behave, and what then happens to it.
type fault struct {
	name   string
	prompt string          // script of a call under way; empty: no call
	ready  string          // the notification after which the fault is made
	do     func(c *client) // the fault
	status []int           // exit statuses that are right
	args   []string
}

const up = `{"do":"event","type":"task_started"}`

func script(steps ...string) string { return "[" + strings.Join(steps, ",") + "]" }

func closeInput(c *client) { _ = c.in.Close() }

func signalled(sig syscall.Signal) func(*client) {
	return func(c *client) { _ = c.cmd.Process.Signal(sig) }
}

// closeOutput goes away as a client that crashed does, then makes the front
// end write.
func closeOutput(c *client) {
	_ = c.out.Close()
	_, _ = c.in.Write([]byte(`{"jsonrpc":"2.0","id":"late","method":"ping"}` + "\n"))
}

var stallingCall = script(up, `{"do":"stall"}`)

// A Codex that does not leave at the end of its input is given a moment.
var impatient = []string{"--codex_cancel_grace", "0.1"}

var faults = []fault{
	{name: "client closes its input", do: closeInput, status: []int{0}},
	{name: "client closes its input during a call", prompt: stallingCall, do: closeInput, status: []int{0}, args: impatient},
	{name: "front end gets SIGKILL", prompt: stallingCall, do: signalled(syscall.SIGKILL), status: []int{137}},
	{name: "front end gets SIGTERM", prompt: stallingCall, do: signalled(syscall.SIGTERM), status: []int{143}},
	{name: "front end gets SIGINT", prompt: stallingCall, do: signalled(syscall.SIGINT), status: []int{130}},
	{name: "front end gets SIGHUP", prompt: stallingCall, do: signalled(syscall.SIGHUP), status: []int{129}},
	{name: "client closes its output", prompt: stallingCall, do: closeOutput, status: []int{0}},
	{name: "CLI ignores TERM", prompt: script(`{"do":"ignore-term"}`, up, `{"do":"stall"}`), do: closeInput, status: []int{0}, args: impatient},
	{name: "CLI ignores TERM, front end gets SIGKILL", prompt: script(`{"do":"ignore-term"}`, up, `{"do":"stall"}`), do: signalled(syscall.SIGKILL), status: []int{137}},
	{name: "CLI double-forks with setsid", prompt: script(`{"do":"linger"}`, up, `{"do":"answer","text":"ok"}`), do: closeInput, status: []int{0}},
	{name: "CLI double-forks, front end gets SIGKILL", prompt: script(`{"do":"linger"}`, up, `{"do":"stall"}`), do: signalled(syscall.SIGKILL), status: []int{137}},
	{name: "CLI exits during a call", prompt: script(`{"do":"linger"}`, up, `{"do":"wait","ms":300}`, `{"do":"exit","code":3}`), do: func(*client) {}, status: []int{3}},
}

// TestFaults makes each fault some times on each runtime and looks at what is
// left. It prints a table; its last line counts what was left.
func TestFaults(t *testing.T) {
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "runtime\tfault\trounds\tcontainers\tprocesses\tlogin copies\tworst time to clean")
	rows, total, ran := 0, 0, 0
	for _, runtime := range []string{"local", "docker"} {
		t.Run(runtime, func(t *testing.T) {
			image := ""
			if runtime == "docker" {
				image = fakeImage(t)
			}
			for _, f := range faults {
				t.Run(f.name, func(t *testing.T) {
					var worst time.Duration
					var sum left
					for range *rounds {
						took, l := f.round(t, runtime, image)
						worst = max(worst, took)
						sum.containers = append(sum.containers, l.containers...)
						sum.processes = append(sum.processes, l.processes...)
						sum.copies = append(sum.copies, l.copies...)
						ran++
					}
					rows++
					total += sum.count()
					fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%s\n", runtime, f.name, *rounds,
						len(sum.containers), len(sum.processes), len(sum.copies), worst.Round(time.Millisecond))
					require.Zero(t, sum.count(), sum.String())
					require.Less(t, worst, grace+2*time.Second, "time to clean")
				})
			}
		})
	}
	_ = table.Flush()
	fmt.Printf("faults: %d rows, %d rounds, %d left\n", rows, ran, total)
}

// round makes the fault once.
func (f fault) round(t *testing.T, runtime, image string) (time.Duration, left) {
	s := newSetting(t, runtime, image)
	s.args = append([]string{"--stop_grace", fmt.Sprint(grace.Seconds())}, f.args...)
	s.env = []string{"MCP_AGENTS_CODEX_CLIENT_GONE_GRACE_MS=200"}
	c := s.start(t)
	c.initialize()
	if f.prompt != "" {
		c.codex(f.prompt, nil)
		c.within(30*time.Second, func(r reply) bool { return r.Method == "codex/event" })
		before := s.look(t, c.cmd.Process.Pid)
		require.NotEmpty(t, before.processes, "the observer must see what runs, or it could not see what is left")
		if runtime == "docker" {
			require.Len(t, before.containers, 1)
		} else {
			require.NotEmpty(t, before.copies, "the observer must see the copied login")
		}
	}
	begin := time.Now()
	f.do(c)
	took, l := s.clean(t, c.cmd.Process.Pid, begin, grace+10*time.Second)
	require.Contains(t, f.status, c.exit(10*time.Second), "exit status")
	return took, l
}
