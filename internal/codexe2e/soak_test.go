package codexe2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/frontendtest"
)

var soakCalls = flag.Int("soak", 60, "calls of the soak, on each runtime")

// kinds are what a call of the soak does, and whether it is answered unless it
// is cancelled.
var kinds = []struct {
	name, prompt string
	ends         bool // by itself
}{
	{"answer", script(started, `{"do":"answer","text":"ok"}`), true},
	{"slow", script(started, `{"do":"wait","ms":120}`, `{"do":"event","type":"exec_command_begin"}`, `{"do":"wait","ms":120}`, `{"do":"answer","text":"ok"}`), true},
	{"flood", script(started, `{"do":"stdout","bytes":2000000}`, `{"do":"answer","text":"ok"}`), true},
	{"large", script(started, `{"do":"answer-bytes","bytes":300000}`), true},
	{"end without an answer, then late", script(`{"do":"event","type":"task_complete","fields":{"last_agent_message":"m"}}`, `{"do":"wait","ms":300}`, `{"do":"answer","text":"late"}`), true},
	{"silence, aborted when told", script(started, `{"do":"until-cancelled"}`, `{"do":"event","type":"turn_aborted"}`), false},
	{"silence, answers late", script(started, `{"do":"until-cancelled"}`, `{"do":"wait","ms":500}`, `{"do":"answer","text":"late"}`), false},
}

// TestSoak plays many calls over one connection, eight at a time, with random
// cancels, timeouts, floods and pauses of the client.
func TestSoak(t *testing.T) {
	onBothRuntimes(t, func(t *testing.T, s *setting) {
		mark := fmt.Sprintf("soak-%d", time.Now().UnixNano())
		s.env = []string{"MCP_AGENTS_CODEX_CANCEL_GRACE_MS=2000", "MCP_AGENTS_CODEX_TERMINAL_GRACE_MS=100", "MCP_AGENTS_CODEX_PROGRESS_INTERVAL_MS=20",
			"MCP_AGENTS_CODEX_WAIT_INTERVAL_MS=100", "MCP_AGENTS_CODEX_CLIENT_GONE_GRACE_MS=500", "CODEXE2E_MARK=" + mark}
		s.args = []string{"--codex_idle_timeout", "1", "--env", "CODEXE2E_MARK"}
		c := s.start(t)
		require.NotEmpty(t, frontendtest.Marked(mark, "", c.cmd.Process.Pid), "the observer must see what runs")
		rng := rand.New(rand.NewPCG(1, 2))
		type call struct{ kind, id int }
		var open []call
		counts := map[string]int{}
		cancelled := map[int]bool{}
		begin := time.Now()
		var memory, threads, descriptors []int
		for n := 0; n < *soakCalls || len(open) > 0; {
			for len(open) < 8 && n < *soakCalls {
				k := rng.IntN(len(kinds))
				open = append(open, call{k, c.turn(kinds[k].prompt, nil)})
				n++
				if n%max(1, *soakCalls/10) == 0 {
					memory = append(memory, statusOf(c.cmd.Process.Pid, "VmRSS:"))
					threads = append(threads, statusOf(c.cmd.Process.Pid, "Threads:"))
					fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", c.cmd.Process.Pid))
					descriptors = append(descriptors, len(fds))
				}
			}
			if rng.IntN(10) == 0 {
				c.pause(time.Duration(rng.IntN(200)) * time.Millisecond)
			}
			if i := rng.IntN(len(open)); rng.IntN(15) == 0 && c.answers(open[i].id) == 0 {
				c.cancel(open[i].id)
				cancelled[open[i].id] = true
				counts["cancelled"]++
			}
			time.Sleep(10 * time.Millisecond) // the pace of the client
			var rest []call
			for _, o := range open {
				switch {
				case cancelled[o.id]:
				case c.answers(o.id) > 0:
					name := kinds[o.kind].name
					if c.answer(o.id).Error != nil {
						name = "timed out"
					}
					counts[name]++
				default:
					rest = append(rest, o)
				}
			}
			open = rest
			require.Less(t, time.Since(begin), 10*time.Minute)
		}
		c.check(t, cancelled)
		require.Eventually(t, func() bool {
			return c.ask("codex-peek", map[string]any{}).field("abandonedTurnsProcessWide") == 0.0
		}, 20*time.Second, 200*time.Millisecond, "every turn is heard of again")
		require.Zero(t, c.leave(20*time.Second))
		assert.Empty(t, frontendtest.Marked(mark, ""), "no process is left")
		homes, _ := filepath.Glob(filepath.Join(s.workspace, "tmp", "codex-homes", "*"))
		assert.Empty(t, homes)
		if s.runtime == "docker" {
			assert.Empty(t, frontendtest.Containers(t, "", c.cmd.Process.Pid), "no container is left")
		}
		fmt.Printf("soak on %s: %d calls in %s, 8 at a time: %v; answered twice 0, unanswered 0, progress after an answer 0, unheard of 0, "+
			"processes, homes and containers left 0\n  front end at tenths of it: resident KiB %v, threads %v, descriptors %v\n",
			s.runtime, *soakCalls, time.Since(begin).Round(time.Millisecond), counts, memory, threads, descriptors)
		if half := len(memory) / 2; *soakCalls >= 500 {
			assert.Less(t, memory[len(memory)-1], memory[half]*3/2, "memory is flat")
			assert.LessOrEqual(t, descriptors[len(descriptors)-1], descriptors[0]+2, "descriptors are flat")
		}
	})
}

// check asserts what must hold of all that came.
func (c *client) check(t *testing.T, cancelled map[int]bool) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	answered := map[float64]bool{}
	for _, r := range c.all {
		if token, ok := r.Params.ProgressToken.(float64); ok {
			require.False(t, answered[token], "progress after the answer of %v", token)
		}
		if id, ok := r.ID.(float64); ok && r.Method == "" {
			require.False(t, answered[id], "%v was answered twice", id)
			answered[id] = true
		}
	}
	for id := 1; id <= c.nextID; id++ {
		require.True(t, answered[float64(id)] || cancelled[id], "%d was not answered", id)
	}
}

// statusOf is a number that the kernel tells of a process; memory is in KiB.
func statusOf(pid int, field string) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(b), field)
	n, _ := strconv.Atoi(strings.Fields(rest + " 0")[0])
	return n
}
