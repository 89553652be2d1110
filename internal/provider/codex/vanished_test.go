package codex

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"mcpagents/internal/mcp/stdio"
	"mcpagents/internal/testkit/scenario"
)

// A wrapper holds the pipes open, so that the end of the input never comes.
func TestParentDies(t *testing.T) {
	for _, tt := range []struct {
		name string
		dies bool
		want time.Duration
	}{
		{"dies", true, 20 * time.Second},
		{"lives", false, 5 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				looks := 0
				dog := stdio.Watchdog{Interval: 10 * time.Second, PID: 4711, Probe: func(int) error {
					if looks++; tt.dies && looks > 1 {
						return syscall.ESRCH
					}
					return nil
				}}
				codex := &fakeCodex{script: handshakeSteps()}
				b := startBridge(t, Config{Watchdog: dog}, launched{codex: codex})
				b.Read()
				start := time.Now()
				b.Send(scenario.InitializeLine, scenario.CallLine)
				b.Output()
				time.Sleep(tt.want - time.Since(start) - time.Second) // of the bubble's clock
				assert.NotContains(t, codex.got(), "client disconnected")
				if !tt.dies {
					b.Disconnect()
				}
				b.end(0)
				assert.LessOrEqual(t, time.Since(start), tt.want)
				assert.Contains(t, codex.got(), "client disconnected", "the open call was cancelled")
			})
		})
	}
}

func TestClientIdle(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lines []string
		idle  time.Duration
		after time.Duration // when the bridge ends; 0: not by itself
	}{
		{"nothing comes", nil, time.Minute, time.Minute},
		{"each message counts", []string{scenario.InitializeLine, scenario.ListLine}, time.Minute, time.Minute + 2*time.Second},
		{"a request is open", []string{scenario.InitializeLine, scenario.CallLine}, time.Minute, 0},
		{"off", []string{scenario.InitializeLine}, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				codex := &fakeCodex{script: handshakeSteps(step{on: `"tools/list"`, out: `{"jsonrpc":"2.0","id":$id,"result":{"tools":[]}}` + "\n"})}
				b := startBridge(t, Config{ClientIdle: tt.idle}, launched{codex: codex})
				b.Read()
				start := time.Now()
				for _, line := range tt.lines {
					time.Sleep(time.Second) // of the bubble's clock
					b.Send(line)
					b.Output()
				}
				if tt.after == 0 {
					time.Sleep(5 * time.Minute)
					assert.Empty(t, b.Code, "the bridge still serves")
					b.Disconnect()
					b.end(0)
					return
				}
				b.end(0)
				assert.Equal(t, tt.after, time.Since(start))
			})
		})
	}
}
