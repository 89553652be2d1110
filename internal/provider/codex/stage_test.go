package codex

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/mcp"
	"mcpagents/internal/sandbox/wire"
	"mcpagents/internal/testkit/scenario"
)

// TestCuratedList holds what the scenarios take for the curated list.
func TestCuratedList(t *testing.T) {
	native := []byte(scenario.NativeList(2))
	at, _ := mcp.Lookup(native, "result")
	curated := string(newCatalog(DefaultModels).curate(native, at))
	if *update {
		require.NoError(t, os.WriteFile(filepath.Join("codextest", "testdata", "curated-tools-list.json"), []byte(curated+"\n"), 0o644))
	}
	assert.Equal(t, curated, scenario.CuratedList(2), "run the test with -update and look at the difference")
}

// TestScenarios plays the table in memory, on the clock of a bubble.
func TestScenarios(t *testing.T) {
	for _, s := range scenario.Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory(t, s.Settings)
				scenario.Play(t, m, s)
			})
		})
	}
}

// memory is a stage without processes.
type memory struct {
	b       *testBridge
	codex   *fakeCodex
	rotated bool
}

func newMemory(t *testing.T, s scenario.Settings) *memory {
	old := strings.Contains(s.Version, "0.130")
	m := &memory{codex: &fakeCodex{script: handshakeSteps(), version: "0.153.4", old: old}}
	m.b = startBridge(t, Config{Times: Times(s.Times), Goal: s.Goal, ClientGoneGrace: s.Gone, MaxCommentary: s.MaxCommentary, CheckCwd: scenario.CheckCwd},
		launched{codex: m.codex})
	m.b.Read()
	m.b.Send(scenario.InitializeLine)
	m.b.Output()
	return m
}

func (m *memory) Send(text string) {
	_, err := io.WriteString(m.b.In, text)
	require.NoError(m.b, err)
}

func (m *memory) Disconnect()           { m.b.Disconnect() }
func (m *memory) Settle()               { synctest.Wait() }
func (m *memory) Sleep(d time.Duration) { time.Sleep(d) } // of the bubble's clock
func (m *memory) Pause()                { m.b.Pause() }
func (m *memory) Resume()               { m.b.Resume() }
func (m *memory) Take() string          { return m.b.Output() }
func (m *memory) Got() string           { synctest.Wait(); return m.codex.got() }
func (m *memory) Log() string           { return m.b.Log.String() }
func (m *memory) Says(text string) bool { return strings.Contains(m.Log(), text) }
func (m *memory) Stretch() int          { return 1 }
func (m *memory) Late() time.Duration   { return 0 }
func (m *memory) MaxCommentary() int    { return 64 }

func (m *memory) Wait() int {
	code := <-m.b.Code
	m.b.ended()
	return code
}

// WrittenBack: who starts Codex hears that its login must not be.
func (m *memory) WrittenBack() bool { return m.rotated && m.codex.invalidated == 0 }

func (m *memory) Do(s scenario.Step, later bool) {
	switch s.Do {
	case "raw":
		if !later {
			_, err := io.WriteString(m.codex.stdout, s.Text)
			require.NoError(m.b, err)
			return
		}
		m.b.Tasks.Go(func() { _, _ = io.WriteString(m.codex.stdout, s.Text) })
		synctest.Wait()
	case "say":
		_, err := io.WriteString(m.codex.stderr, s.Text)
		require.NoError(m.b, err)
	case "exit":
		m.codex.end(*exits(s.Code), "")
	case "kill":
		m.codex.end(wire.Exit{Code: 128 + s.Code, Signal: s.Code, Reason: wire.ReasonSignal}, "")
	case "deaf":
		m.codex.muted.Store(true)
	case "rotate":
		m.rotated = true
	default:
		require.Fail(m.b, "unknown step "+s.Do)
	}
}
