package codex

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// quick are the times of most scenarios.
var quick = Times{Idle: 300 * time.Millisecond, Hard: 2 * time.Second, TerminalGrace: 80 * time.Millisecond,
	CancelGrace: 100 * time.Millisecond, FlushStall: time.Minute, StatusInterval: 1500 * time.Millisecond, ProgressInterval: time.Second}

// scenario runs play with a bridge whose client has done the handshake, and
// whose Codex says what play makes it say.
func scenario(t *testing.T, name string, cfg Config, play func(t *testing.T, b *testBridge)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := startBridge(t, cfg, launched{codex: &fakeCodex{script: handshakeSteps(), version: "0.153.4"}})
			b.read()
			b.send(initializeLine)
			b.output()
			play(t, b)
		})
	})
}

// leave ends a scenario as a client does, with the exit status 0.
func (b *testBridge) leave() {
	b.Helper()
	b.disconnect()
	b.end(0)
}

// says makes Codex write text and waits until everybody has done with it.
func (b *testBridge) says(text string) {
	b.Helper()
	_, err := io.WriteString(b.codexes[0].stdout, text)
	require.NoError(b, err)
	synctest.Wait()
}

// pass lets time pass.
func pass(d time.Duration) {
	time.Sleep(d) // of the bubble's clock
	synctest.Wait()
}

const ms = time.Millisecond

// event is an event of a request, whose id is JSON, in thread T1.
func event(id any, kind, fields string) string {
	if fields != "" {
		fields = "," + fields
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"codex/event","params":{"_meta":{"requestId":%v,"threadId":"T1"},"id":"0","msg":{"type":%q%s}}}`+"\n", id, kind, fields)
}

// turnCall calls codex, with a progress token if that is not empty.
func turnCall(id any, token string) string {
	meta := ""
	if token != "" {
		meta = `"_meta":{"progressToken":` + token + `},`
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":"tools/call","params":{%s"name":"codex","arguments":{"prompt":"%s","cwd":"/ws","sandbox":"workspace-write"}}}`, id, meta, secret)
}

// toolLine calls a tool with arguments, which are JSON.
func toolLine(id any, tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, arguments)
}

func cancelLine(id any) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%v}}`, id)
}

// native is Codex's answer to a turn.
func native(id any, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":{"content":[{"type":"text","text":%q}],"structuredContent":{"threadId":"T1","content":%q}}}`+"\n", id, text, text)
}

// message is what a client got.
type message struct {
	ID     json.RawMessage
	Method string
	Params struct {
		ProgressToken json.RawMessage
		Progress      int
		Message       string
	}
	Result *struct {
		Content           []struct{ Text string }
		StructuredContent map[string]any
		IsError           bool
	}
	Error *struct {
		Code    int
		Message string
	}
}

// messages returns what came since the last look, parsed. Every line must be a
// message.
func (b *testBridge) messages() []message {
	b.Helper()
	var all []message
	for line := range strings.Lines(b.output()) {
		var m message
		require.NoError(b, json.Unmarshal([]byte(line), &m), "%q", line)
		all = append(all, m)
	}
	return all
}

// answers returns only answers, by id.
func (b *testBridge) answers() map[string]message {
	b.Helper()
	all := map[string]message{}
	for _, m := range b.messages() {
		if m.Method == "" {
			require.NotContains(b, all, string(m.ID), "answered twice")
			all[string(m.ID)] = m
		}
	}
	return all
}

// told returns the texts of progress notifications.
func told(all []message) []string {
	var texts []string
	for _, m := range all {
		if m.Method == "notifications/progress" {
			texts = append(texts, m.Params.Message)
		}
	}
	return texts
}

// ask calls a tool of ours and returns its answer.
func (b *testBridge) ask(tool, arguments string) message {
	b.Helper()
	b.asked++
	id := fmt.Sprintf(`"ask-%d"`, b.asked)
	b.send(toolLine(id, tool, arguments))
	m, ok := b.answers()[id]
	require.True(b, ok, "no answer to %s", tool)
	return m
}

// field is a member of a structured answer.
func (m message) field(name string) any { return m.Result.StructuredContent[name] }

// codexGot is what Codex has read.
func (b *testBridge) codexGot() string { synctest.Wait(); return b.codexes[0].got() }
