package acceptance

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"
)

// grace is the --stop_grace of every front end here.
const grace = time.Second

// slack is what an end may take beyond the grace, and beyond the lifeline's
// length where the fault leaves the stream open.
const slack = 2 * time.Second

// fault is one row of the table: a front end with a CLI that was told how to
// behave, and what then happens to it.
type fault struct {
	name   string
	on     string                                    // the only runtime that it is made on; empty: both
	setup  func(t *testing.T, s *setting)            // before the start
	prompt string                                    // script of a call under way; empty: no call
	silent bool                                      // the client stops reading once the call has begun
	do     func(c *client)                           // the fault
	after  func(c *client)                           // once all is clean, before the end is waited for
	verify func(t *testing.T, s *setting, c *client) // once the front end has ended
	args   []string
	points int               // kills of a start, instead of do
	longer time.Duration     // what the time to clean may take beyond grace and slack
	exit   time.Duration     // what the front end's own end may take; default 10 s
	status []int             // exit statuses that are right
	told   string            // pattern of what the client was told of the call; empty: nothing
	toldOn map[string]string // ... where runtimes differ
	says   string            // pattern that the log must have
}

const up = `{"do":"event","type":"task_started"}`

func script(steps ...string) string {
	b := "["
	for i, s := range steps {
		if i > 0 {
			b += ","
		}
		b += s
	}
	return b + "]"
}

var stallingCall = script(up, `{"do":"stall"}`)

// allFaults are the rows in the order of the table.
func allFaults() []fault {
	return slices.Concat(frontEndFaults, clientFaults, cliFaults, initFaults, surroundingFaults, engineFaults)
}

// TestFaults makes each fault some times on each runtime and looks at what is
// left. It prints a table; its last line counts what was left.
func TestFaults(t *testing.T) {
	table := &faultTable{}
	for _, runtime := range []string{"local", "docker"} {
		t.Run(runtime, func(t *testing.T) {
			image := ""
			if runtime == "docker" {
				image = fakeImage(t)
			}
			for _, f := range allFaults() {
				if f.on != "" && f.on != runtime {
					continue
				}
				t.Run(f.name, func(t *testing.T) { f.row(t, table, runtime, image) })
			}
		})
	}
	table.settle(t)
	table.print()
}

// row makes the fault *rounds times.
func (f fault) row(t *testing.T, table *faultTable, runtime, image string) {
	r := table.add(runtime, f.name)
	for range *rounds {
		if f.points > 0 {
			f.kills(t, r, runtime, image)
		} else {
			f.round(t, r, runtime, image)
		}
	}
	require.Zero(t, r.left.count(), r.left.String())
}

// round makes the fault once.
func (f fault) round(t *testing.T, r *row, runtime, image string) {
	s := newSetting(t, runtime, image)
	s.args = append([]string{"--stop_grace", fmt.Sprint(grace.Seconds())}, f.args...)
	s.env = []string{"MCP_AGENTS_CODEX_CLIENT_GONE_GRACE_MS=200"}
	if f.setup != nil {
		f.setup(t, s)
	}
	r.rounds++
	c := s.start(t)
	c.initialize()
	call := 0
	if f.prompt != "" {
		if f.silent {
			c.pauseAfter("codex/event")
		}
		call = c.codex(f.prompt, nil)
		c.within(30*time.Second, func(r reply) bool { return r.Method == "codex/event" })
		s.requireSeen(t, c.cmd.Process.Pid)
	}
	c.begin()
	f.do(c)
	limit := grace + slack + f.longer
	took, l := s.clean(t, c.cmd.Process.Pid, c.since, limit+10*time.Second)
	if f.after != nil {
		f.after(c)
	}
	status := c.exit(max(f.exit, 10*time.Second))
	told := c.told(call)
	r.record(took, l, told)
	require.Zero(t, l.count(), l.String())
	require.Contains(t, f.status, status, "exit status")
	require.Less(t, took, limit+s.slowestLook, "time to clean")
	want := f.told
	if w, ok := f.toldOn[runtime]; ok {
		want = w
	}
	if want == "" {
		want = "^-$"
	}
	require.Regexp(t, want, told, "what the client was told")
	require.Regexp(t, f.says, c.stderr.String(), "what the log says")
	if f.verify != nil {
		f.verify(t, s, c)
	}
}

// requireSeen is the control of the observer: it must see what runs, or it
// could not see what is left.
func (s *setting) requireSeen(t *testing.T, frontEnd int) {
	t.Helper()
	l := s.look(t, frontEnd)
	require.NotEmpty(t, l.processes, "the observer must see what runs, or it could not see what is left")
	if s.runtime == "docker" {
		require.Len(t, l.containers, 1)
	} else {
		require.NotEmpty(t, l.copies, "the observer must see the copied login")
	}
}

// row is one line of the table.
type row struct {
	runtime, name string
	rounds        int
	left          left
	worst         time.Duration
	told          []string           // each answer once
	late          []func(*testing.T) // looks that must wait until something may be swept
}

func (r *row) record(took time.Duration, l left, told string) {
	r.worst = max(r.worst, took)
	r.left = r.left.plus(l)
	if told != "" && !slices.Contains(r.told, told) {
		r.told = append(r.told, told)
	}
}

// faultTable collects the rows.
type faultTable struct{ rows []*row }

func (ft *faultTable) add(runtime, name string) *row {
	r := &row{runtime: runtime, name: name}
	ft.rows = append(ft.rows, r)
	return r
}

// settle takes the looks that had to wait.
func (ft *faultTable) settle(t *testing.T) {
	for _, r := range ft.rows {
		for _, look := range r.late {
			look(t)
		}
	}
}

func (ft *faultTable) print() {
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "runtime\tfault\trounds\tcontainers\tprocesses\tlogin copies\tworst time to clean\tthe client was told")
	rounds, count := 0, 0
	for _, r := range ft.rows {
		told := "-"
		for i, text := range r.told {
			if i == 0 {
				told = text
			} else {
				told += " | " + text
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\n", r.runtime, r.name, r.rounds,
			len(r.left.containers), len(r.left.processes), len(r.left.copies), r.worst.Round(time.Millisecond), told)
		rounds += r.rounds
		count += r.left.count()
	}
	_ = w.Flush()
	fmt.Printf("faults: %d rows, %d rounds, %d left\n", len(ft.rows), rounds, count)
}

// aborted is the message of a call that the bridge had to give up.
var aborted = regexp.MustCompile(`aborted before responding \((.*)\); the request`)

// told is the short form of what the client was told of a call: "-" if nothing.
func (c *client) told(call int) string {
	c.readOn()
	for line := range c.lines {
		c.note(line)
	}
	r, ok := c.answers[float64(call)]
	switch {
	case !ok:
		return "-"
	case r.Error != nil:
		text := r.Error.Message
		if m := aborted.FindStringSubmatch(text); m != nil {
			text = m[1]
		}
		return fmt.Sprintf("%d %.100s", r.Error.Code, text)
	}
	return fmt.Sprintf("%.60s", r.text())
}

func signalled(sig syscall.Signal) func(*client) {
	return func(c *client) { _ = c.cmd.Process.Signal(sig) }
}
