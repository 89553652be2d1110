package acceptance

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"mcpagents/internal/testkit/wait"

	"github.com/stretchr/testify/require"
)

var kill = signalled(syscall.SIGKILL)

// answeredThenLeave waits for the answer of the call and leaves.
func answeredThenLeave(c *client) {
	c.answer(c.nextID)
	c.begin()
	closeInput(c)
}

// answeredOrLost waits for the answer of the call, or the front end's end, and
// leaves.
func answeredOrLost(c *client) {
	c.t.Helper()
	limit := time.After(30 * time.Second)
	for open := true; open; {
		select {
		case line, more := <-c.lines:
			_, _ = c.note(line)
			_, answered := c.answers[float64(c.nextID)]
			open = more && !answered
		case <-limit:
			require.FailNow(c.t, "neither an answer nor an end came")
		}
	}
	c.begin()
	closeInput(c)
}

// untilExit is for faults that the CLI makes itself: they begin with its end,
// which shows as the front end's.
func untilExit(c *client) {
	c.exit()
	c.begin()
}

// cliFaults are those of the CLI in the sandbox.
var cliFaults = []fault{
	{name: "CLI ignores TERM", prompt: script(ignoreTerm, up, stall), do: closeInput, status: []int{0}, args: impatient},
	{name: "CLI ignores TERM, front end gets SIGKILL", prompt: script(ignoreTerm, up, stall), do: kill, status: []int{137}},
	{name: "CLI double-forks with setsid", prompt: script(linger, up, answerOK), do: closeInput, status: []int{0}, told: "^ok|^-$"},
	{name: "CLI double-forks, front end gets SIGKILL", prompt: script(linger, up, stall), do: kill, status: []int{137}},
	{name: "CLI exits during a call", prompt: script(linger, up, pause, exit3), do: untilExit,
		status: []int{3}, told: "^-32001 codex exited with code 3"},
	{name: "CLI dies in the middle of a frame", prompt: script(up, pause, `{"do":"raw","text":"{\"jsonrpc\":\"2.0\",\"id\":2,\"res"}`, exit3),
		do: untilExit, status: []int{3}, told: "^-32001 codex exited with code 3"},
	{name: "CLI writes 200 MB to stdout, then answers", prompt: script(up, `{"do":"stdout","bytes":200000000}`, answerOK),
		do: smallThenLeave, status: []int{0}, told: "^ok$"},
	{name: "CLI floods stdout, front end gets SIGKILL", prompt: floodingCall, do: kill, status: []int{137}},
	{name: "CLI writes 100 MB to stderr, then answers", prompt: script(up, `{"do":"stderr-lines","bytes":100000000}`, answerOK),
		do: smallThenLeave, status: []int{0}, told: "^ok$"},
	{name: "CLI writes 10 MB to stderr without a line break, then answers", prompt: script(up, `{"do":"stderr","bytes":10000000}`, answerOK),
		do: smallThenLeave, status: []int{0}, told: "^ok$"},
	{name: "CLI floods stderr, front end gets SIGKILL", prompt: script(up, `{"do":"stderr","bytes":500000000}`), do: kill, status: []int{137}},
	{name: "CLI forks a bomb, client closes its input", prompt: bombCall, do: amongMany(closeInput), status: []int{0},
		args: append([]string{"--pids-limit", "64"}, impatient...)},
	{name: "CLI forks a bomb, front end gets SIGKILL", prompt: bombCall, do: amongMany(kill), status: []int{137}, args: []string{"--pids-limit", "64"}},
	{name: "CLI takes more memory than there is", on: "docker", prompt: script(up, pause, hog), do: untilExit, args: []string{"--memory", "96m"},
		status: []int{137}, told: "^-32001 .*out of memory.*--memory"},
	{name: "CLI fills the temporary files", on: "docker", prompt: script(up, fill, answerOK), do: answeredThenLeave,
		args: []string{"--memory", "128m", "--log_level", "debug"}, status: []int{0}, told: "^ok$", says: "no space left on device"},
}

var bombCall = script(ignoreTerm, up, `{"do":"bomb","ms":20000}`, stall)

// amongMany waits until the bomb has gone off, as far as the limit of processes
// and threads lets it.
func amongMany(do func(*client)) func(*client) {
	return func(c *client) {
		many := 20
		if c.s.runtime == "docker" {
			many = 3 // each takes several threads
		}
		wait.Until(c.t, func() bool { return len(c.s.marked(c.cmd.Process.Pid)) >= many })
		c.begin()
		do(c)
	}
}

// afterAMoment lets what the CLI began go on for a while first.
func afterAMoment(do func(*client)) func(*client) {
	return func(c *client) {
		select {
		case <-time.After(500 * time.Millisecond): // longer than a pause in its script
		case <-c.exited:
		}
		c.begin()
		do(c)
	}
}

// dockerOnlyHolds is what is told when the kernel protects PID 1 of a container
// and nothing protects a local sandbox-init.
var dockerOnlyHolds = map[string]string{"docker": "^ok$", "local": "sandbox.*(lost|ended)"}

// initFaults are those by which the CLI, which runs as the same user, attacks
// its own sandbox-init. They may break its own sandbox, and leave nothing. Where
// a local sandbox-init was broken and the front end killed too, nobody is left
// who could clean: the next start does.
var initFaults = []fault{
	{name: "CLI kills its sandbox-init", prompt: script(ignoreTerm, linger, up, pause, `{"do":"signal-init","code":9}`, pause, answerOK),
		do: answeredOrLost, status: []int{0, 1}, toldOn: dockerOnlyHolds},
	{name: "CLI sends all signals to its sandbox-init", prompt: script(up, pause, `{"do":"signal-init"}`, pause, answerOK),
		do: answeredOrLost, status: []int{0}, told: "^ok$"},
	limits("nofile", 0, closeInput, 0), limits("nofile", 0, kill, 137),
	limits("nproc", 0, closeInput, 0), limits("nproc", 0, kill, 137),
	limits("as", 1<<20, closeInput, 0), limits("as", 1<<20, kill, 137),
	limits("fsize", 0, closeInput, 0), limits("fsize", 0, kill, 137),
	stops("client closes its input", closeInput, 0), stops("front end gets SIGKILL", kill, 137),
}

// limits is the row of a limit of sandbox-init that the CLI lowers, with a
// process that left the CLI's session and the end that then comes.
func limits(name string, to int, do func(*client), status int) fault {
	end := "client closes its input"
	if status != 0 {
		end = "front end gets SIGKILL"
	}
	// An init that can open nothing may not see what it should kill. It is then
	// ended by the front end, whose own patience comes on top.
	return fault{name: "CLI limits " + name + " of its sandbox-init, " + end, do: afterAMoment(do), status: []int{status, 1}, longer: 6 * time.Second,
		prompt: script(ignoreTerm, linger, up, pause, limitStep(name, to), stall), args: impatient, told: ".", swept: status != 0}
}

// stops is the row of a local sandbox-init that the CLI stops: it sees nothing
// any more, until somebody continues it.
func stops(end string, do func(*client), status int) fault {
	return fault{name: "CLI stops its sandbox-init, " + end, on: "local", prompt: script(linger, up, pause, `{"do":"signal-init","code":19}`, stall),
		do: afterAMoment(do), longer: shortLifeline, args: append(shortLived, impatient...), status: []int{status, 1}, told: ".", swept: status != 0}
}

func limitStep(name string, to int) string {
	return fmt.Sprintf(`{"do":"limit-init","type":%q,"bytes":%d}`, name, to)
}

// maxFrontEnd bounds the memory of a front end that carries much, in KiB.
const maxFrontEnd = 64 << 10

// smallThenLeave waits for the answer, checks that what passed through was not
// kept, and leaves.
func smallThenLeave(c *client) {
	c.answer(c.nextID)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	require.NoError(c.t, err)
	peak := 0
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	_, err = fmt.Sscan(rest, &peak)
	require.NoError(c.t, err)
	require.Less(c.t, peak, maxFrontEnd, "the front end's memory in KiB")
	c.begin()
	closeInput(c)
}
