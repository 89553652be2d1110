package codex

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/testkit/frontend"
	"mcpagents/internal/testkit/scenario"
)

var soakCalls = flag.Int("soak", 60, "calls of the soak, on each runtime")

// kinds are what a call of the soak does. Its answer is one of texts; without
// texts it is silent until it is told to stop, so that its time runs out.
var kinds = []struct {
	name, prompt string
	texts        []string
}{
	{"answer", script(started, `{"do":"answer","text":"ok"}`), []string{"ok"}},
	{"slow", script(started, `{"do":"wait","ms":120}`, `{"do":"event","type":"exec_command_begin"}`, `{"do":"wait","ms":120}`, `{"do":"answer","text":"ok"}`), []string{"ok"}},
	{"flood", script(started, `{"do":"stdout","bytes":2000000}`, `{"do":"answer","text":"ok"}`), []string{"ok"}},
	{"large", script(started, `{"do":"answer-bytes","bytes":300000}`), []string{strings.Repeat("x", 300000)}},
	// The text of the end, or the answer where the machine was so busy that it came within the grace.
	{"end without an answer, then late", script(`{"do":"event","type":"task_complete","fields":{"last_agent_message":"m"}}`, `{"do":"wait","ms":300}`, `{"do":"answer","text":"late"}`), []string{"m", "late"}},
	{"silence, aborted when told", script(started, `{"do":"until-cancelled"}`, `{"do":"event","type":"turn_aborted"}`), nil},
	{"silence, answers late", script(started, `{"do":"until-cancelled"}`, `{"do":"wait","ms":500}`, `{"do":"answer","text":"late"}`), nil},
}

// judge names the answer of a call that may have one of texts, and says what is
// wrong with it. timeout tells that the call's time ran out, as it must without
// texts, and as no other does on a machine that is not busy.
func judge(texts []string, r reply) (timeout bool, err error) {
	switch {
	case r.Error != nil && (r.Error.Code != -32001 || !strings.HasPrefix(r.Error.Message, "mcp-agents: codex pass-through request idle timeout (1s); ")):
		return false, fmt.Errorf("it failed with %d %q", r.Error.Code, r.Error.Message)
	case r.Error != nil:
		return true, nil
	case r.Result == nil || r.Result.IsError || !slices.Contains(texts, r.text()):
		return false, fmt.Errorf("its answer is %.200q", r.text())
	}
	return false, nil
}

func TestSoakJudge(t *testing.T) {
	late := `{"error":{"code":-32001,"message":"mcp-agents: codex pass-through request idle timeout (1s); the bridge stayed connected."}}`
	tests := []struct {
		name, reply string
		texts       []string
		timeout     bool
		err         string
	}{
		{"an answer", `{"result":{"content":[{"type":"text","text":"late"}]}}`, []string{"m", "late"}, false, ""},
		{"another", `{"result":{"content":[{"type":"text","text":"no"}]}}`, []string{"m"}, false, `its answer is "no"`},
		{"nothing", `{}`, []string{"m"}, false, `its answer is ""`},
		{"an error result", `{"result":{"isError":true,"content":[{"type":"text","text":"m"}]}}`, []string{"m"}, false, `its answer is "m"`},
		{"one of a silent call", `{"result":{"content":[{"type":"text","text":"late"}]}}`, nil, false, `its answer is "late"`},
		{"no time", late, []string{"m"}, true, ""},
		{"no time, and silent", late, nil, true, ""},
		{"another deadline", strings.Replace(late, "idle timeout (1s)", "hard timeout (1s)", 1), nil, false, "it failed with -32001"},
		{"an abort", `{"error":{"code":-32001,"message":"mcp-agents: codex pass-through aborted before responding (codex exited)"}}`, nil, false, "it failed with -32001"},
		{"an internal error", strings.Replace(late, "-32001", "-32603", 1), nil, false, "it failed with -32603"},
		{"a refusal", `{"error":{"code":-32602,"message":"no"}}`, nil, false, `it failed with -32602 "no"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r reply
			require.NoError(t, json.Unmarshal([]byte(tt.reply), &r))
			timeout, err := judge(tt.texts, r)
			assert.Equal(t, tt.timeout, timeout)
			if tt.err == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, tt.err)
			}
		})
	}
}

// soak is one run of the soak.
type soak struct {
	*client
	rng       *rand.Rand
	counts    map[string]int
	cancelled map[int]bool
	wrong     []string // calls that were answered otherwise than they should
	expired   int      // silent calls whose time ran out
	starved   int      // others

	memory, threads, descriptors []int // of the front end, at tenths of the run
}

// TestSoak plays many calls over one connection, eight at a time, with random
// cancels, timeouts, floods and pauses of the client.
func TestSoak(t *testing.T) {
	onBothRuntimes(t, func(t *testing.T, s *setting) {
		mark := fmt.Sprintf("soak-%d", time.Now().UnixNano())
		s.env = []string{"MCP_AGENTS_CODEX_CANCEL_GRACE_MS=2000", "MCP_AGENTS_CODEX_TERMINAL_GRACE_MS=100", "MCP_AGENTS_CODEX_PROGRESS_INTERVAL_MS=20",
			"MCP_AGENTS_CODEX_WAIT_INTERVAL_MS=100", "MCP_AGENTS_CODEX_CLIENT_GONE_GRACE_MS=500", "CODEXE2E_MARK=" + mark}
		s.args = []string{"--codex_idle_timeout", "1", "--env", "CODEXE2E_MARK"}
		k := &soak{client: s.start(t), rng: rand.New(rand.NewPCG(1, 2)), counts: map[string]int{}, cancelled: map[int]bool{}}
		require.NotEmpty(t, frontend.Marked(mark, "", k.cmd.Process.Pid), "the observer must see what runs")
		begin, stop := time.Now(), scenario.MeasureTicks()
		k.play(t)
		took, late := time.Since(begin), stop()

		unheard := func() any { return k.ask("codex-peek", map[string]any{}).field("abandonedTurnsProcessWide") }
		unheardOf := unheard()
		for since := time.Now(); unheardOf != 0.0 && time.Since(since) < 20*time.Second; unheardOf = unheard() {
			time.Sleep(200 * time.Millisecond)
		}
		twice, unanswered, afterwards := k.faults()
		require.Zero(t, k.leave(20*time.Second))
		processes := frontend.Marked(mark, "")
		homes, _ := filepath.Glob(filepath.Join(s.workspace, "tmp", "codex-homes", "*"))
		containers := "none were made"
		if s.runtime == "docker" {
			left := frontend.Containers(t, "", k.cmd.Process.Pid)
			assert.Empty(t, left, "no container is left")
			containers = strconv.Itoa(len(left))
		}
		fmt.Printf("soak on %s: %d calls in %s, 8 at a time: %v; answered wrongly %d, answered twice %d, unanswered %d, progress after an answer %d, "+
			"unheard of %v; left: processes %d, homes %d, containers %s; a tick was %s late\n"+
			"  front end at tenths of it: resident KiB %v, threads %v, descriptors %v\n",
			s.runtime, *soakCalls, took.Round(time.Millisecond), k.counts, len(k.wrong), len(twice), len(unanswered), len(afterwards),
			unheardOf, len(processes), len(homes), containers, late.Round(time.Millisecond), k.memory, k.threads, k.descriptors)
		if *soakCalls >= 60 { // fewer need not hold all
			assert.NotEmpty(t, k.cancelled, "some calls must be cancelled")
			assert.NotZero(t, k.expired, "the time of some silent calls must run out")
		}
		assert.Empty(t, k.wrong, "answered wrongly")
		assert.Empty(t, twice, "answered twice")
		assert.Empty(t, unanswered, "unanswered")
		assert.Empty(t, afterwards, "progress after the answer")
		assert.Equal(t, 0.0, unheardOf, "every turn is heard of again")
		assert.Empty(t, processes, "no process is left")
		assert.Empty(t, homes, "no private home is left")
		assert.True(t, k.starved == 0 || late >= scenario.Busy && k.starved <= *soakCalls/10,
			"the time of %d calls that end by themselves ran out, while a tick was at most %s late", k.starved, late)
		if half := len(k.memory) / 2; *soakCalls >= 500 {
			assert.Less(t, k.memory[len(k.memory)-1], k.memory[half]*3/2, "memory is flat")
			assert.LessOrEqual(t, k.descriptors[len(k.descriptors)-1], k.descriptors[0]+2, "descriptors are flat")
		}
	})
}

// play makes the calls and judges their answers.
func (k *soak) play(t *testing.T) {
	t.Helper()
	type call struct{ kind, id int }
	var open []call
	begin := time.Now()
	for n := 0; n < *soakCalls || len(open) > 0; {
		for len(open) < 8 && n < *soakCalls {
			kind := k.rng.IntN(len(kinds))
			open = append(open, call{kind, k.turn(kinds[kind].prompt, nil)})
			if n++; n%max(1, *soakCalls/10) == 0 {
				k.look()
			}
		}
		if k.rng.IntN(10) == 0 {
			k.pause(time.Duration(k.rng.IntN(200)) * time.Millisecond)
		}
		if i := k.rng.IntN(len(open)); k.rng.IntN(40) == 0 && k.answers(open[i].id) == 0 {
			k.cancel(open[i].id)
			k.cancelled[open[i].id] = true
			k.counts["cancelled"]++
		}
		time.Sleep(10 * time.Millisecond) // the pace of the client
		open = slices.DeleteFunc(open, func(c call) bool {
			if !k.cancelled[c.id] && k.answers(c.id) == 0 {
				return false
			}
			if !k.cancelled[c.id] {
				k.count(c.kind, k.answer(c.id))
			}
			return true
		})
		require.Less(t, time.Since(begin), 10*time.Minute)
	}
}

// count counts the answer of a call.
func (k *soak) count(kind int, r reply) {
	name, texts := kinds[kind].name, kinds[kind].texts
	timeout, err := judge(texts, r)
	switch {
	case err != nil:
		k.wrong = append(k.wrong, fmt.Sprintf("%v, %s: %v", r.ID, name, err))
	case timeout:
		k.counts[name+": timed out"]++
		if texts == nil {
			k.expired++
		} else {
			k.starved++
		}
	default:
		k.counts[name]++
	}
}

// look notes what the front end uses.
func (k *soak) look() {
	pid := k.cmd.Process.Pid
	k.memory = append(k.memory, statusOf(pid, "VmRSS:"))
	k.threads = append(k.threads, statusOf(pid, "Threads:"))
	fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	k.descriptors = append(k.descriptors, len(fds))
}

// faults returns the ids that were answered twice or, uncancelled, not at all,
// and those that progress was told of after their answer.
func (k *soak) faults() (twice, unanswered, afterwards []float64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	answered := map[float64]bool{}
	for _, r := range k.all {
		if token, ok := r.Params.ProgressToken.(float64); ok && answered[token] {
			afterwards = append(afterwards, token)
		}
		if id, ok := r.ID.(float64); ok && r.Method == "" {
			if answered[id] {
				twice = append(twice, id)
			}
			answered[id] = true
		}
	}
	for id := 1; id <= k.nextID; id++ {
		if !answered[float64(id)] && !k.cancelled[id] {
			unanswered = append(unanswered, float64(id))
		}
	}
	return twice, unanswered, afterwards
}

func TestSoakFaults(t *testing.T) {
	k := &soak{client: &client{nextID: 5}, cancelled: map[int]bool{4: true}}
	for _, line := range []string{`{"id":1,"result":{}}`, `{"method":"notifications/progress","params":{"progressToken":2}}`, `{"id":2,"result":{}}`,
		`{"method":"notifications/progress","params":{"progressToken":2}}`, `{"id":3,"error":{}}`, `{"id":3,"result":{}}`, `{"id":1,"method":"ask"}`} {
		var r reply
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		k.all = append(k.all, r)
	}
	twice, unanswered, afterwards := k.faults()
	assert.Equal(t, []float64{3}, twice)
	assert.Equal(t, []float64{5}, unanswered, "4 was cancelled")
	assert.Equal(t, []float64{2}, afterwards)
}

// statusOf is a number that the kernel tells of a process; memory is in KiB.
func statusOf(pid int, field string) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(b), field)
	n, _ := strconv.Atoi(strings.Fields(rest + " 0")[0])
	return n
}
