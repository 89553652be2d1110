package browser

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"mcpagents/internal/mcp/stdio"
)

func TestClientThatVanishes(t *testing.T) {
	looks := 0
	dog := stdio.Watchdog{Interval: 10 * time.Second, PID: 4711, Probe: func(int) error {
		if looks++; looks > 1 {
			return syscall.ESRCH
		}
		return nil
	}}
	scenario(t, "its process dies", Config{Watchdog: dog}, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "slow", ""))
		pass(11 * time.Second)
		assert.Empty(t, b.Code)
		pass(10 * time.Second)
		b.end(0)
		b.requireReplaced(b.answers()["3"], true)
		assert.Contains(t, b.lessor.asked(), "release g1 shutdown")
	})
	scenario(t, "it says nothing", Config{ClientIdle: time.Minute}, func(t *testing.T, b *testBridge) {
		b.Send(call(3, "slow", ""))
		pass(2 * time.Minute)
		assert.Empty(t, b.Code, "a request is open")
		b.says(withID(nativeOK, 3) + "\n")
		pass(time.Minute)
		b.end(0)
		assert.Contains(t, b.lessor.asked(), "release g1 shutdown")
	})
	scenario(t, "it may say nothing", Config{}, func(t *testing.T, b *testBridge) {
		pass(24 * time.Hour)
		assert.Empty(t, b.Code)
		b.leave()
	})
}
