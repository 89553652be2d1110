package acceptance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/mcp/toolserver"
	"mcpagents/internal/testkit/frontend"
	"mcpagents/internal/testkit/wait"
)

// toolFault is one row of the table for the provider claude: a review, or a call
// that waits, of a fake Claude Code that was told how to behave.
type toolFault struct {
	name    string
	waits   bool            // claude_code instead of a review
	before  string          // steps before the CLI shows that it works
	steps   string          // ... and after that
	do      func(*toolTurn) // what happens to it meanwhile; nil: the CLI makes the fault itself
	args    []string
	timeout int           // of a call that waits, in milliseconds
	longer  time.Duration // what the time to clean may take beyond grace and slack
	status  int           // of the front end
	told    string        // pattern of what the client was told; empty: nothing
}

// Steps of the fake Claude Code. A pause leaves time for a look at what runs.
const (
	lookPause    = `{"do":"pause","ms":500}`
	resultOK     = `{"do":"result","text":"ok"}`
	longLine     = `{"do":"stdout-bytes","repeat":100000000}`
	invalidEvent = `{"do":"stdout-hex","text":"7b2274797065223a22617373697374616e74222c2278223a22ff227d0afe0a"}` // {"type":"assistant","x":"\xff"}\n\xfe\n
	invalidText  = `{"do":"stdout-hex","text":"7b2274797065223a22726573756c74222c22726573756c74223a226f6bff227d0a"}`
)

// drain is what a server leaves calls that are under way when its client has left.
const drain = toolserver.DefaultDrainTimeout

// claudeFaults are what Claude Code does wrong, and what it does while others do.
var claudeFaults = []toolFault{
	{name: "a result, then it never exits", before: ignoreTerm, steps: resultOK + "," + linger + "," + stall, told: "^ok$"},
	{name: "a result, then it never exits, in a call", waits: true, before: ignoreTerm, steps: resultOK + "," + linger + "," + stall, timeout: 4000, told: "^ok$"},
	{name: "silence", before: ignoreTerm, steps: linger + "," + stall, args: []string{"--timeout", "5"}, told: "^Claude: timed out after 5000ms$"},
	{name: "silence in a call", waits: true, before: ignoreTerm, steps: linger + "," + stall, timeout: 5000, told: "^claude failed: killed by SIGKILL"},
	{name: "a line of 100 MB", before: ignoreTerm, steps: longLine + "," + stall, told: "^Claude: one output event exceeded the stream safety limit$"},
	{name: "a line of 100 MB in a call", waits: true, before: ignoreTerm, steps: longLine + "," + stall, told: "^claude stdout maxBuffer exceeded$"},
	{name: "invalid UTF-8", before: invalidEvent, steps: invalidText, told: "^ok\uFFFD$"},
	{name: "invalid UTF-8 in a call", waits: true, steps: invalidText, told: "^ok\uFFFD$"},
	{name: "a tool leaves a child in the background", before: linger, steps: resultOK + `,{"do":"exit"}`, told: "^ok$"},
	{name: "a tool leaves a child in the background, in a call", waits: true, before: linger, steps: resultOK + `,{"do":"exit"}`, told: "^ok$"},
	{name: "canceled while it ignores everything", before: ignoreTerm + "," + linger, steps: stall, do: (*toolTurn).cancel, told: "^Claude: canceled$"},
	{name: "client leaves", before: ignoreTerm + "," + linger, steps: stall, do: (*toolTurn).leave, longer: drain},
	{name: "client leaves a call", waits: true, before: ignoreTerm + "," + linger, steps: stall, do: (*toolTurn).leave, longer: drain},
	{name: "front end gets SIGKILL", before: ignoreTerm + "," + linger, steps: stall, do: (*toolTurn).kill, status: 137},
	{name: "front end gets SIGKILL during a call", waits: true, before: ignoreTerm + "," + linger, steps: stall, do: (*toolTurn).kill, status: 137},
}

// makeClaudeFaults adds the rows of claude to the table.
func makeClaudeFaults(t *testing.T, table *faultTable, runtime string) {
	image := ""
	if runtime == "docker" {
		image = fakeToolImage(t)
	}
	dir, remove, err := frontend.Programs("mcp-agents-fakeclaude-", map[string]string{"claude": "mcpagents/internal/testkit/fakeclaude"})
	require.NoError(t, err)
	t.Cleanup(remove) // when the rows are done: it is on the PATH of their local sandboxes
	for _, f := range claudeFaults {
		if leftOut(runtime, "claude: "+f.name) {
			continue
		}
		t.Run("claude "+f.name, func(t *testing.T) {
			t.Parallel()
			r := table.add(runtime, "claude: "+f.name)
			for range *rounds {
				f.round(t, r, runtime, image, dir)
			}
			require.Zero(t, r.left.count(), r.left.String())
		})
	}
}

// toolTurn is a turn of a round at work.
type toolTurn struct {
	*client
	job  string // of a review
	call int    // of one that waits
	told string
	over bool // the front end has been told to end
}

// round makes the fault once.
func (f toolFault) round(t *testing.T, r *row, runtime, image, dir string) {
	s := newSetting(t, runtime, image)
	credentials := fmt.Sprintf(`{"claudeAiOauth":{"accessToken":%q,"refreshToken":"r","expiresAt":4102444800000}}`, s.secret)
	require.NoError(t, os.WriteFile(filepath.Join(s.login, ".credentials.json"), []byte(credentials), 0o600))
	s.args = append([]string{"--provider", "claude", "--network", "none", "--warm", "0", "--stop_grace", fmt.Sprint(grace.Seconds())}, f.args...)
	s.env = []string{"CLAUDE_CONFIG_DIR=" + s.login, "ANTHROPIC_API_KEY=", "ANTHROPIC_AUTH_TOKEN=", "CLAUDE_CODE_OAUTH_TOKEN=",
		"XDG_CACHE_HOME=" + filepath.Join(s.workspace, "cache"), "PATH=" + dir + ":" + os.Getenv("PATH")} // homes are where copies looks
	r.rounds++
	c := s.start(t)
	c.initialize()
	turn := f.begin(t, c)
	s.requireSeen(t, c.cmd.Process.Pid)
	c.begin()
	if f.do != nil {
		f.do(turn)
	} else {
		turn.end()
	}
	limit := s.limit(grace + f.longer)
	took, l := s.clean(t, c.cmd.Process.Pid, c.since, limit)
	if !turn.over { // the fault cost its turn and nothing else
		require.Equal(t, "next", c.tool("claude_code", map[string]any{"prompt": "next"}).text)
		closeInput(c)
	}
	status := c.exit()
	if turn.told == "" {
		turn.told = "-"
	}
	r.record(took, l, turn.told)
	require.Zero(t, l.count(), l.String())
	require.Equal(t, f.status, status, "exit status")
	require.Less(t, took, limit, "time to clean")
	want := f.told
	if want == "" {
		want = "^-$"
	}
	require.Regexp(t, want, turn.told, "what the client was told")
}

// begin starts the turn and waits until the CLI shows that it works.
func (f toolFault) begin(t *testing.T, c *client) *toolTurn {
	t.Helper()
	steps := []string{`{"do":"event","type":"assistant"}`, lookPause, f.steps}
	mark := filepath.Join(c.s.workspace, "at-work")
	if f.waits {
		steps[0] = `{"do":"record","path":"` + mark + `"}`
	}
	if f.before != "" {
		steps = append([]string{f.before}, steps...)
	}
	prompt := "[" + strings.Join(steps, ",") + "]"
	require.True(t, json.Valid([]byte(prompt)), prompt)
	turn := &toolTurn{client: c}
	if f.waits {
		args := map[string]any{"prompt": prompt}
		if f.timeout > 0 {
			args["timeout_ms"] = f.timeout
		}
		turn.call = c.request("tools/call", map[string]any{"name": "claude_code", "arguments": args})
		wait.Until(t, func() bool { return exists(c.s.workspace, "at-work") })
		return turn
	}
	a := c.tool("claude-start", map[string]any{"prompt": prompt, "cwd": c.cmd.Dir})
	turn.job = a.Structured.JobID
	for a.Structured.State != "running" {
		require.Contains(t, []string{"starting", ""}, a.Structured.State)
		a = c.tool("claude-status", map[string]any{"jobId": turn.job, "cursor": a.Structured.Cursor, "wait_ms": 30000})
	}
	return turn
}

// end waits for the turn's end, from which on nothing of it may be there.
func (t *toolTurn) end() {
	t.t.Helper()
	if t.job == "" {
		t.told = t.answer(t.call).text()
	} else if a := t.jobEnd(t.job); a.Structured.State == "completed" {
		t.told = t.tool("claude-result", map[string]any{"jobId": t.job}).Structured.Text
	} else {
		t.told = a.Structured.Message
	}
	t.told, _, _ = strings.Cut(t.told, "\n")
	t.client.begin()
}

func (t *toolTurn) cancel() {
	t.t.Helper()
	require.Equal(t.t, "canceling", t.tool("claude-cancel", map[string]any{"jobId": t.job}).Structured.State)
	t.end()
}

func (t *toolTurn) leave() {
	t.over = true
	closeInput(t.client)
}

func (t *toolTurn) kill() {
	t.over = true
	signalled(syscall.SIGKILL)(t.client)
}
