package codex

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/testkit/scenario"
)

// FuzzCodexOutput lets Codex write anything, in two pieces, while a call, a
// cancelled call and a job are open: the bridge neither fails nor hangs, and
// what it writes for itself says one answer for each id at most.
func FuzzCodexOutput(f *testing.F) {
	for _, seed := range []string{
		scenario.Event(3, "task_complete", `"last_agent_message":"x"`), scenario.Event(4, "turn_aborted", ""), scenario.Unauthorized(3), scenario.Native(3, "x"), scenario.Native(4, "x"), scenario.NativeInitialize,
		`{"jsonrpc":"2.0","id":"mcp-agents/job/x/1","result":{}}` + "\n", `{"id":7,"method":"elicitation/create","params":{"threadId":"T1"}}` + "\n",
		`{"method":"codex/event","params":{"_meta":[],"msg":{"type":{}}}}` + "\n", "\n\n{\"id\":3,\"error\":{}}\nhalf", `{"id":3,"result":{"isError":true,"content":7}}` + "\n",
	} {
		f.Add([]byte(seed), uint16(len(seed)/2))
	}
	f.Fuzz(func(t *testing.T, data []byte, cut uint16) {
		synctest.Test(t, func(t *testing.T) {
			b := startBridge(t, Config{Times: quickTimes}, launched{codex: &fakeCodex{script: handshakeSteps()}})
			b.Read()
			b.Send(scenario.InitializeLine, scenario.TurnCall(3, `"t"`), scenario.TurnCall(4, ""), scenario.CancelLine(4), scenario.ToolLine(5, "codex-start", `{"prompt":"p","cwd":"/ws","sandbox":"read-only"}`))
			b.Output()
			n := min(int(cut), len(data))
			for _, part := range [][]byte{data[:n], data[n:]} {
				if _, err := b.codexes[0].stdout.Write(part); err != nil {
					break
				}
				pass(200 * ms)
			}
			pass(quickTimes.Hard)
			out := b.Output()
			if !bytes.Contains(data, []byte("-32001")) {
				require.LessOrEqual(t, strings.Count(out, `"id":3,"error":{"code":-32001`), 1)
			}
			if !bytes.Contains(data, []byte("mcp-agents")) {
				require.NotContains(t, out, privateIDs)
			}
			b.In.Close()
			_, _ = io.WriteString(b.codexes[0].stdout, "\n")
			<-b.Code
		})
	})
}
