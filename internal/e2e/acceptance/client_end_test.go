package acceptance

import (
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpagents/internal/testkit/images"
	"mcpagents/internal/testkit/wait"

	"github.com/stretchr/testify/require"
)

// wrapped makes cmd the child of a shell that holds its pipes, as npx and the
// like do, and that lives until it is killed.
func wrapped(cmd *exec.Cmd) *exec.Cmd {
	shell := exec.Command("/bin/sh", append([]string{"-c", `exec 3<&0; "$@" <&3 3<&- & wait; sleep 600`, "sh"}, cmd.Args...)...)
	shell.Dir, shell.Env = cmd.Dir, cmd.Env
	return shell
}

// The client's process dies while something else holds the pipes open: no end
// of input ever comes. The watchdog, if it was asked for, sees it.
func TestParentIsKilledBehindAWrapper(t *testing.T) {
	for _, tt := range []struct{ provider, runtime string }{{"codex", "local"}, {"claude", "docker"}} {
		for _, seconds := range []string{"1", "0"} {
			t.Run(tt.provider+" every "+seconds, func(t *testing.T) {
				t.Parallel() // most of it is waiting
				image := ""
				if tt.runtime == "docker" {
					image = images.Claude(t)
				}
				s := newSetting(t, tt.runtime, image)
				s.args = []string{"--provider", tt.provider, "--parent_watchdog", seconds, "--stop_grace", "1"}
				s.env = []string{"ANTHROPIC_API_KEY=none", "MCP_AGENTS_CODEX_CLIENT_GONE_GRACE_MS=200"}
				c := s.startCommand(t, wrapped(s.command()))
				c.initialize()
				if tt.provider == "codex" {
					c.codex(stallingCall, nil)
					c.until(func(r reply) bool { return r.Method == "codex/event" })
					require.NotEmpty(t, s.marked(0), "the observer must see what runs")
				} else { // the spare of a claude that serves
					wait.Until(t, func() bool { return len(s.mounting(t)) == 1 })
				}
				require.NoError(t, c.cmd.Process.Kill())
				if seconds == "0" { // control: nobody looks
					select {
					case line, open := <-c.lines:
						require.True(t, open, "the front end ended by itself")
						t.Logf("%s", line)
					case <-time.After(3 * time.Second):
					}
				} else {
					requireEnd(t, c)
				}
				_ = c.in.Close() // of one that has ended it is closed
				requireEnd(t, c)
				wait.Until(t, func() bool { return len(s.mounting(t))+len(s.marked(0))+len(s.copies(t)) == 0 })
			})
		}
	}
}

// requireEnd waits for the end of stdout, which is that of the front end.
func requireEnd(t *testing.T, c *client) {
	t.Helper()
	for timer := time.After(wait.Limit); ; {
		select {
		case _, open := <-c.lines:
			if !open {
				return
			}
		case <-timer:
			require.FailNow(t, "the front end still runs after "+wait.Limit.String())
		}
	}
}

// A client that sends all of its questions and ends its input reads all of the
// answers. A call among them is not waited for, and leaves nothing.
func TestAnswersComeAfterTheEndOfInput(t *testing.T) {
	const lists = 20
	for _, runtime := range []string{"local", "docker"} {
		for _, call := range []string{"", stallingCall} {
			t.Run(fmt.Sprintf("%s, call %t", runtime, call != ""), func(t *testing.T) {
				image := ""
				if runtime == "docker" {
					image = fakeImage(t)
				}
				s := newSetting(t, runtime, image)
				s.args = []string{"--stop_grace", "1"}
				s.env = []string{"MCP_AGENTS_CODEX_CLIENT_GONE_GRACE_MS=200"}
				c := s.start(t)
				c.nextID = 1
				var all strings.Builder
				all.WriteString(initializeMessage + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
				for range lists {
					c.nextID++
					fmt.Fprintf(&all, `{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`+"\n", c.nextID)
				}
				if call != "" {
					arguments, err := json.Marshal(map[string]any{"prompt": call, "cwd": s.workspace, "sandbox": "read-only"})
					require.NoError(t, err)
					fmt.Fprintf(&all, `{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"codex","arguments":%s}}`+"\n", arguments)
				}
				_, err := io.WriteString(c.in, all.String())
				require.NoError(t, err)
				require.NoError(t, c.in.Close())
				require.Zero(t, c.exit())
				for line := range c.lines {
					_, err := c.note(line)
					require.NoError(t, err)
				}
				for id := 1; id <= lists+1; id++ {
					require.Contains(t, c.answers, float64(id))
					require.Nil(t, c.answers[float64(id)].Error)
				}
				s.requireNothing(t, c.cmd.Process.Pid)
			})
		}
	}
}

// Clients give servers little or no time. A signal that comes before the first
// message ends a front end like any other.
func TestSignalRightAfterTheStart(t *testing.T) {
	for _, after := range []time.Duration{0, 5 * time.Millisecond, 50 * time.Millisecond} {
		for _, provider := range []string{"codex", "claude"} {
			t.Run(fmt.Sprintf("%s after %s", provider, after), func(t *testing.T) {
				s := newSetting(t, "docker", "")
				s.args = []string{"--provider", provider}
				s.env = []string{"ANTHROPIC_API_KEY=none"}
				c := s.start(t)
				time.Sleep(after) // that is the fault
				c.begin()
				require.NoError(t, c.cmd.Process.Signal(syscall.SIGTERM))
				require.Equal(t, 128+15, c.exit())
				s.requireNothing(t, c.cmd.Process.Pid)
			})
		}
	}
}

// Whoever signals twice means it: after the second signal the front end does
// not wait for its sandbox, which ends by itself.
func TestSecondSignalHastens(t *testing.T) {
	start := func(t *testing.T, grace string) (*setting, *client, func() []string) {
		s := newSetting(t, "local", "")
		s.args = []string{"--stop_grace", grace}
		c := s.start(t)
		c.initialize()
		c.codex(script(ignoreTerm, up, stall), nil)
		c.until(func(r reply) bool { return r.Method == "codex/event" })
		s.requireSeen(t, c.cmd.Process.Pid)
		require.NoError(t, c.cmd.Process.Signal(syscall.SIGTERM))
		wait.Until(t, func() bool { return strings.Contains(c.stderr.String(), "signal") })
		return s, c, func() (pids []string) {
			for _, p := range s.marked(c.cmd.Process.Pid) {
				if pid, line, _ := strings.Cut(p, " "); strings.HasPrefix(line, "codex ") {
					pids = append(pids, pid)
				}
			}
			return pids
		}
	}
	t.Run("second", func(t *testing.T) {
		s, c, cli := start(t, "3600")
		require.NoError(t, c.cmd.Process.Signal(syscall.SIGINT))
		require.Equal(t, 128+2, c.exit())
		require.Len(t, cli(), 1, "the grace of the sandbox is not over")
		pid, err := strconv.Atoi(cli()[0])
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		s.requireNothing(t, c.cmd.Process.Pid)
	})
	t.Run("only one", func(t *testing.T) { // control
		s, c, cli := start(t, "1")
		require.Equal(t, 128+15, c.exit())
		require.Empty(t, cli(), "the front end has waited for its sandbox")
		s.requireNothing(t, c.cmd.Process.Pid)
	})
}
