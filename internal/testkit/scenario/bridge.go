package scenario

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Bridge is a stage with the words that scenarios use.
type Bridge struct {
	testing.TB
	stage Stage
	asked int
}

// send writes lines of the client and waits until everybody has done with them.
func (b *Bridge) send(lines ...string) {
	b.Helper()
	b.stage.Send(strings.Join(lines, "\n") + "\n")
	b.stage.Settle()
}

// says makes Codex write text and waits until everybody has done with it.
func (b *Bridge) says(text string) {
	b.Helper()
	b.stage.Do(Step{Do: "raw", Text: text}, false)
	b.stage.Settle()
}

// saysLater makes Codex write text that the bridge may not take yet.
func (b *Bridge) saysLater(text string) { b.stage.Do(Step{Do: "raw", Text: text}, true) }

// stderr makes Codex write there.
func (b *Bridge) stderr(text string) { b.stage.Do(Step{Do: "say", Text: text}, false) }

// exits ends Codex with a status, dies by a signal.
func (b *Bridge) exits(code int) { b.stage.Do(Step{Do: "exit", Code: code}, false); b.stage.Settle() }
func (b *Bridge) dies(signal int) {
	b.stage.Do(Step{Do: "kill", Code: signal}, false)
	b.stage.Settle()
}

// rotates makes Codex replace its login.
func (b *Bridge) rotates() { b.stage.Do(Step{Do: "rotate"}, false) }

// output returns everything that came since the last look.
func (b *Bridge) output() string {
	b.stage.Settle()
	return b.stage.Take()
}

// expect asserts what came since the last look, line by line.
func (b *Bridge) expect(lines ...string) {
	b.Helper()
	want := ""
	for _, l := range lines {
		want += strings.TrimSuffix(l, "\n") + "\n"
	}
	require.Equal(b, want, b.output())
}

// codexGot is what Codex has read.
func (b *Bridge) codexGot() string { b.stage.Settle(); return b.stage.Got() }

// passes lets a time pass behind which something is due.
func (b *Bridge) passes(d time.Duration) {
	b.stage.Sleep(d)
	if b.real() {
		time.Sleep(slack + min(2*b.stage.Late(), mostSlack))
	}
	b.stage.Settle()
}

// slack is how much later than due something may come where time is real and
// the machine is not busy.
const slack = 250 * time.Millisecond

// mostSlack bounds what a slow way through the bridge adds to it, for the bridge
// may be what is slow.
const mostSlack = time.Second

// waits lets a time pass that must not bring anything about.
func (b *Bridge) waits(d time.Duration) {
	b.stage.Sleep(d)
	b.stage.Settle()
}

// real says that times are stretched ones of this machine's clock, so that an
// exact moment cannot be met.
func (b *Bridge) real() bool { return b.stage.Stretch() > 1 }

// seconds is a time as the bridge says it.
func (b *Bridge) seconds(d time.Duration) string {
	return fmt.Sprintf("(%.0fs)", math.Round((d * time.Duration(b.stage.Stretch())).Seconds()))
}

// took is a time as the bridge says it where it says it exactly.
func (b *Bridge) took(d time.Duration) string {
	return fmt.Sprintf("%dms", (d * time.Duration(b.stage.Stretch())).Milliseconds())
}

// streamed waits until text has come, which is part of a line too long to hold.
func (b *Bridge) streamed(text string) {
	b.Helper()
	got := b.output()
	for begin := time.Now(); b.real() && len(got) < len(text) && time.Since(begin) < 30*time.Second; {
		time.Sleep(10 * time.Millisecond)
		got += b.stage.Take()
	}
	require.True(b, got == text, "%d bytes came, not the %d that were written", len(got), len(text))
}

// ends waits for the bridge and asserts its exit status.
func (b *Bridge) ends(code int) {
	b.Helper()
	require.Equal(b, code, b.stage.Wait())
}

// leave ends a scenario as a client does, with the exit status 0.
func (b *Bridge) leave() {
	b.Helper()
	b.stage.Disconnect()
	b.ends(0)
}

// logged asserts that the log holds text, logsNone that it does not.
func (b *Bridge) logged(text string) {
	b.Helper()
	assert.True(b, b.stage.Says(text), "the log holds %q:\n%s", text, b.stage.Log())
}

func (b *Bridge) logsNone(text string) {
	b.Helper()
	assert.NotContains(b, b.stage.Log(), text)
}

// messages returns what came since the last look, parsed. Every line must be a
// message.
func (b *Bridge) messages() []Message {
	b.Helper()
	var all []Message
	for line := range strings.Lines(b.output()) {
		var m Message
		require.NoError(b, json.Unmarshal([]byte(line), &m), "%q", line)
		all = append(all, m)
	}
	return all
}

// answers returns only answers, by id.
func (b *Bridge) answers() map[string]Message {
	b.Helper()
	all := map[string]Message{}
	for _, m := range b.messages() {
		if m.Method == "" {
			require.NotContains(b, all, string(m.ID), "answered twice")
			all[string(m.ID)] = m
		}
	}
	return all
}

// ask calls a tool of ours and returns its answer.
func (b *Bridge) ask(tool, arguments string) Message {
	b.Helper()
	b.asked++
	id := fmt.Sprintf(`"ask-%d"`, b.asked)
	b.send(ToolLine(id, tool, arguments))
	m, ok := b.answers()[id]
	require.True(b, ok, "no answer to %s", tool)
	require.NotNil(b, m.Result, "%s: %v", tool, m.Error)
	return m
}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// start starts a job and returns its id.
func (b *Bridge) start() string {
	b.Helper()
	m := b.ask("codex-start", `{"prompt":"`+Secret+`","cwd":"/ws","sandbox":"workspace-write","goal":"g"}`)
	id, _ := m.field("jobId").(string)
	require.Regexp(b, uuid, id)
	return id
}

var privateJobID = regexp.MustCompile(`"mcp-agents/job/[^"]*"`)

// privateID is the id, as JSON, of the nth call that ran a job.
func (b *Bridge) privateID(n int) string {
	b.Helper()
	var all []string
	for line := range strings.Lines(b.codexGot()) {
		if id := privateJobID.FindString(line); id != "" && strings.Contains(line, "tools/call") {
			all = append(all, id)
		}
	}
	require.Greater(b, len(all), n)
	return all[n]
}

// status polls without waiting.
func (b *Bridge) status(id string) Message {
	b.Helper()
	return b.ask("codex-status", Job(id, `,"cursor":0,"wait_ms":0`))
}
