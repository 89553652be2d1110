package acceptance

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpagents/internal/testkit/wait"

	"github.com/stretchr/testify/require"
)

// grace is the --stop_grace of every front end here.
const grace = time.Second

// fault is one row of the table: a front end with a CLI that was told how to
// behave, and what then happens to it.
type fault struct {
	name      string
	on        string                                    // the only runtime that it is made on; empty: both
	setup     func(t *testing.T, s *setting)            // before the start
	prompt    string                                    // script of a call under way; empty: no call
	silent    bool                                      // the client stops reading once the call has begun
	do        func(c *client)                           // the fault
	after     func(c *client)                           // once all is clean, before the end is waited for
	verify    func(t *testing.T, s *setting, c *client) // once the front end has ended
	args      []string
	ownEngine bool              // the engine is the test's own, one for all such rows
	points    int               // kills of a start, instead of do
	swept     bool              // on the local runtime the next start cleans
	longer    time.Duration     // what the time to clean may take beyond grace and slack
	status    []int             // exit statuses that are right
	told      string            // pattern of what the client was told of the call; empty: nothing
	toldOn    map[string]string // ... where runtimes differ
	says      string            // pattern that the log must have
}

// Steps of the fake Codex. Each call begins with up, after which the fault is made.
const (
	up         = `{"do":"event","type":"task_started"}`
	answerOK   = `{"do":"answer","text":"ok"}`
	pause      = `{"do":"wait","ms":300}`
	stall      = `{"do":"stall"}`
	exit3      = `{"do":"exit","code":3}`
	ignoreTerm = `{"do":"ignore-term"}`
	linger     = `{"do":"linger"}` // in a session of its own
	deaf       = `{"do":"deaf"}`   // reads no more
	hog        = `{"do":"hog"}`    // takes memory
	fill       = `{"do":"fill"}`   // writes temporary files
	rotate     = `{"do":"rotate"}` // the login's token
)

func script(steps ...string) string { return "[" + strings.Join(steps, ",") + "]" }

var stallingCall = script(up, stall)

// allFaults are the rows in the order of the table.
func allFaults() []fault {
	return slices.Concat(frontEndFaults, clientFaults, cliFaults, initFaults, surroundingFaults, engineFaults)
}

// TestFaults makes each fault some times on each runtime and looks at what is
// left. It prints a table; its last line counts what was left.
func TestFaults(t *testing.T) {
	table := &faultTable{}
	t.Run("on", func(t *testing.T) { // returns when all rows are done
		for _, runtime := range []string{"local", "docker"} {
			t.Run(runtime, func(t *testing.T) {
				makeFaults(t, table, runtime)
			})
		}
	})
	table.settle(t)
	table.print()
}

// onDocker are the rows that the docker runtime plays without MCP_AGENTS_FULL=1:
// one of each kind. On the local runtime each row is played.
var onDocker = []string{
	"front end gets SIGKILL",
	"front end gets SIGSTOP, later SIGCONT",
	"client closes its input during a call",
	"CLI double-forks, front end gets SIGKILL",
	"CLI floods stdout, front end gets SIGKILL",
	"CLI takes more memory than there is",
	"CLI kills its sandbox-init",
	"login's token is rotated",
	"link to the engine goes half open for all connections",
	"claude: canceled while it ignores everything",
	"claude: front end gets SIGKILL during a call",
	"browser: box is killed during a call",
	"browser: front end gets SIGKILL during a call",
}

// leftOut is whether the row is for the whole table only.
func leftOut(runtime, name string) bool {
	return runtime == "docker" && !full && !slices.Contains(onDocker, name)
}

func makeFaults(t *testing.T, table *faultTable, runtime string) {
	image := ""
	if runtime == "docker" {
		image = fakeImage(t)
	}
	var together []fault // of one engine of our own
	for _, f := range allFaults() {
		switch {
		case f.on != "" && f.on != runtime || leftOut(runtime, f.name):
		case f.ownEngine:
			together = append(together, f)
		default:
			t.Run(f.name, func(t *testing.T) {
				t.Parallel() // most of a round is waiting for a grace
				f.row(t, table, runtime, image)
			})
		}
	}
	makeClaudeFaults(t, table, runtime)
	makeBrowserFaults(t, table, runtime)
	if len(together) == 0 {
		return
	}
	t.Run("own engine", func(t *testing.T) {
		t.Parallel()
		for _, f := range together {
			t.Run(f.name, func(t *testing.T) { f.row(t, table, runtime, image) })
		}
	})
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
		c.until(func(r reply) bool { return r.Method == "codex/event" })
		s.requireSeen(t, c.cmd.Process.Pid)
	}
	c.begin()
	f.do(c)
	limit := s.limit(grace + f.longer)
	sweeps := f.swept && runtime == "local"
	if sweeps {
		limit = settling
	}
	took, l := s.clean(t, c.cmd.Process.Pid, c.since, limit)
	if l.count() > 0 && sweeps {
		l = s.nextStart(t, c.cmd.Process.Pid, l)
		r.swept, took = true, 0
	}
	if f.after != nil {
		f.after(c)
	}
	status := c.exit()
	told := c.told(call)
	r.record(took, l, told)
	require.Zero(t, l.count(), l.String())
	require.Contains(t, f.status, status, "exit status")
	if !sweeps {
		require.Less(t, took, limit, "time to clean")
	}
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

// limit is how long the end of everything is waited for that should take d, and
// the slack, and a look.
func (s *setting) limit(d time.Duration) time.Duration {
	if *slack == 0 {
		return wait.Limit
	}
	return d + *slack + s.slowestLook
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

func signalled(sig syscall.Signal) func(*client) {
	return func(c *client) { _ = c.cmd.Process.Signal(sig) }
}
