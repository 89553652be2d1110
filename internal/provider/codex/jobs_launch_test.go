package codex

import (
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/testkit/scenario"
)

const ms = time.Millisecond

// quickTimes are short ones.
var quickTimes = Times{Idle: 300 * ms, Hard: 2 * time.Second, TerminalGrace: 80 * ms, CancelGrace: 100 * ms, FlushStall: time.Minute,
	StatusInterval: 1500 * ms, ProgressInterval: time.Second}

var jobID = regexp.MustCompile(`"jobId":"([^"]*)"`)

// startJob starts a job and returns its id.
func (b *testBridge) startJob() string {
	b.Helper()
	b.Send(scenario.ToolLine(`"start"`, "codex-start", `{"prompt":"p","cwd":"/ws","sandbox":"read-only"}`))
	found := jobID.FindStringSubmatch(b.Output())
	require.NotNil(b, found)
	return found[1]
}

// ask calls a tool of a job and returns the line that answers.
func (b *testBridge) ask(tool, id, more string) string {
	b.Helper()
	b.Send(scenario.ToolLine(`"ask"`, tool, scenario.Job(id, more)))
	return b.Output()
}

func TestJobsBeforeCodexRuns(t *testing.T) {
	t.Run("a job while Codex cannot be started", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			codex := &fakeCodex{script: handshakeSteps(step{on: "tools/call", out: scenario.Native("$id", "worked")})}
			b := startBridge(t, Config{Times: quickTimes}, launched{err: errNoEngine}, launched{err: errNoEngine}, launched{codex: codex})
			b.Read()
			b.Send(scenario.InitializeLine)
			b.Output()
			status := b.ask("codex-status", b.startJob(), `,"cursor":0`)
			assert.Contains(t, status, `"state":"failed"`)
			assert.Contains(t, status, "no container engine answers")
			result := b.ask("codex-result", b.startJob(), "") // tries again
			assert.Contains(t, result, `"text":"worked"`)
			b.Disconnect()
			b.end(0)
		})
	})
	t.Run("210 a job is cancelled while Codex starts", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			gate := make(chan struct{})
			codex := &fakeCodex{script: handshakeSteps()}
			b := startBridge(t, Config{Times: quickTimes}, launched{codex: codex, gate: gate})
			b.Read()
			b.Send(scenario.InitializeLine)
			assert.Contains(t, b.ask("codex-cancel", b.startJob(), ""), `"state":"canceled"`)
			close(gate)
			b.Output()
			assert.NotContains(t, codex.got(), "tools/call")
			b.Disconnect()
			b.end(0)
		})
	})
}
