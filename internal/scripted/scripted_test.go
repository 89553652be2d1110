package scripted

import (
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"mcpagents/internal/sandbox/local"
)

// The container's form is tested with the real CLIs, by the suites that use it.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLocal(t *testing.T) {
	rt, err := local.New()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "scenario.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"steps": [], "final": "hello"}`), 0o600))
	for _, scenario := range []string{"demo", file} {
		m, err := Start(t.Context(), Options{Runtime: rt, Scenario: scenario})
		require.NoError(t, err)
		url := m.BaseURL("codex")
		assert.Regexp(t, `^http://127\.0\.0\.1:\d+/v1$`, url)
		assert.Equal(t, url, m.BaseURL("claude")+"/v1", "Claude Code adds the version itself")
		assert.Equal(t, []string{"--model_base_url", url}, m.Flags("codex"), "any network will do")
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		answer, err := client.Get(url + "/models")
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		assert.Equal(t, http.StatusOK, answer.StatusCode)
		require.NoError(t, m.Close(t.Context()))
		_, err = client.Get(url + "/models")
		assert.Error(t, err, "it is gone")
	}
}

func TestScenarioThatIsNotThere(t *testing.T) {
	rt, err := local.New()
	require.NoError(t, err)
	for scenario, want := range map[string]string{"nothing": "no scenario is named", "./missing.json": "missing.json"} {
		_, err = Start(t.Context(), Options{Runtime: rt, Scenario: scenario})
		assert.ErrorContains(t, err, want)
	}
}

func TestFilesComeByTheirContent(t *testing.T) {
	name, script, err := scenarioInput("demo")
	require.NoError(t, err)
	assert.Equal(t, "demo", name)
	assert.Empty(t, script)
	file := filepath.Join(t.TempDir(), "x.json")
	require.NoError(t, os.WriteFile(file, []byte("{}"), 0o600))
	name, script, err = scenarioInput(file)
	require.NoError(t, err)
	assert.Equal(t, "/dev/stdin", name)
	assert.Equal(t, "{}", string(script))
}

func TestLinuxBinary(t *testing.T) {
	path, err := linuxBinary("/x/mcp-agents")
	if runtime.GOOS == "linux" {
		require.NoError(t, err)
		assert.Equal(t, "/x/mcp-agents", path)
		return
	}
	assert.ErrorContains(t, err, "run `make build`")
}
