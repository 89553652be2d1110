package codex

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/testkit/frontend"
	"mcpagents/internal/testkit/scenario"
)

// TestScenarios plays the table of scenarios, which the bridge also plays in
// memory, with the fake Codex in sandboxes. Most of a scenario is waiting, so
// several are under way at once. The command contract tells what is skipped.
func TestScenarios(t *testing.T) {
	t.Run("local", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			t.Skip("the local runtime needs Linux")
		}
		playAll(t, "local", func(scenario.Settings) string { return "" })
	})
	t.Run("docker", func(t *testing.T) {
		image, old := fakeImage(t), oldFakeImage(t)
		fronts := playAll(t, "docker", func(s scenario.Settings) string {
			if s.Version != "" {
				return old
			}
			return image
		})
		for _, pid := range fronts {
			assert.Empty(t, frontend.Containers(t, "", pid), "no container is left")
		}
	})
}

// playAll plays all scenarios on a runtime and returns the front ends' pids.
func playAll(t *testing.T, runtime string, image func(scenario.Settings) string) []int {
	patience := scenario.NewPatience()
	var mu sync.Mutex
	var pids []int
	t.Run("all", func(t *testing.T) {
		for _, s := range scenario.Scenarios() {
			t.Run(s.Name, func(t *testing.T) {
				if s.InMemory != "" {
					t.Skip("in memory only: " + s.InMemory)
				}
				t.Parallel()
				patience.Play(t, s, func(t testing.TB, settings scenario.Settings) scenario.Stage {
					b := newBoxed(t, runtime, image(settings), settings)
					mu.Lock()
					defer mu.Unlock()
					pids = append(pids, b.cmd.Process.Pid)
					return b
				})
			})
		}
	})
	require.NotEmpty(t, pids)
	return pids
}
