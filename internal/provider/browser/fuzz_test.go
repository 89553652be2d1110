package browser

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/provider/browser/lease"
)

// FuzzDownstreamOutput lets the tool server write anything, in two pieces, while
// two browser calls and another request are open, and the browser has become
// another one: the bridge neither fails nor hangs, answers each request at most
// once, and passes no result of a browser call on.
func FuzzDownstreamOutput(f *testing.F) {
	for _, seed := range []string{
		withID(nativeOK, 3) + "\n", withID(nativeOK, 4), withID(cannotConnect, 3) + "\n", `{"result":{"content":[]},"id":3}` + "\n",
		`{"id":3,"result":{"content":[{"text":"cut` + "\n", `{"id":7,"method":"roots/list"}` + "\n" + `{"id":7,"method":"roots/list"}` + "\n",
		`{"jsonrpc":"2.0","id":"mcp-agents/browser/initialize/x/1","result":{}}` + "\n", "\n\n{\"id\":5,\"error\":{}}\nhalf", `{"id":3,"id":5,"result":{}}` + "\n",
		`[{"id":3,"result":{}}]` + "\n", `{"method":"notifications/tools/list_changed"}` + "\n", `{"id":3.0,"result":{}}` + "\n",
	} {
		f.Add([]byte(seed), uint16(len(seed)/2))
	}
	f.Fuzz(func(t *testing.T, data []byte, cut uint16) {
		synctest.Test(t, func(t *testing.T) {
			b := startBridge(t, Config{Times: Times{Hard: time.Minute, Idle: time.Hour, Progress: time.Second, FlushStall: time.Minute}})
			b.Send(initializeLine, initializedLine, listLine, call(3, "slow", `"t"`), call(4, "slow", ""), `{"jsonrpc":"2.0","id":5,"method":"x/y"}`)
			b.Output()
			b.lessor.becomes("another")
			b.lessor.set(func(f *fakeLessor) { f.state = lease.Lost })
			n := min(int(cut), len(data))
			for _, part := range [][]byte{data[:n], data[n:]} {
				if _, err := b.tool(0).stdout.Write(part); err != nil {
					break
				}
				pass(time.Second)
			}
			pass(2 * time.Minute)
			out := b.Output()
			if !bytes.Contains(data, []byte("browser_")) && !bytes.Contains(data, []byte("\\u")) {
				require.Equal(t, 2, strings.Count(out, `"code":"`+codeReplaced+`"`), "each browser call is answered once, as a lost browser: %q", out)
			}
			b.In.Close()
			_, _ = io.WriteString(b.tool(b.starts()-1).stdout, "\n")
			<-b.Code
		})
	})
}
