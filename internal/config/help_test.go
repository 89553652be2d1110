package config

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var someCommands = []Command{
	{Name: "doctor", Short: "Check the engine, the images and the logins, and say how to mend what is broken."},
	{Name: "ps", Short: "List sandboxes."},
}

func TestHelpGolden(t *testing.T) {
	got := Help("1.2.3", someCommands)
	path := filepath.Join("testdata", "help.golden")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update to write it")
	assert.Equal(t, strings.ReplaceAll(string(want), "\r\n", "\n"), got)
}

func TestHelpTokens(t *testing.T) {
	help := Help("1.2.3", nil)
	for _, token := range []string{
		"mcp-agents v1.2.3", "Usage:", "gpt-5.6-sol", "xhigh", "workspace-write", "never",
		"--codex-workspace-network", "codex_idle_timeout", "codex_status_interval", "Persistent objective",
		"browser_lease_command", "npx chrome-devtools-mcp@latest", "claude 900, browser 600, gemini 300",
		"18 seconds", "below 20",
	} {
		assert.Contains(t, help, token)
	}
	for _, name := range append(Names(), EnvNames()...) {
		assert.Contains(t, help, name)
	}
}

func TestHelpNamesEachFlagOnItsOwnLine(t *testing.T) {
	lines := strings.Split(Help("1.2.3", nil), "\n")
	for _, f := range Flags() {
		found := 0
		for _, line := range lines {
			if fields := strings.Fields(line); strings.HasPrefix(line, "  -") && (fields[0] == "--"+f.Name ||
				len(fields) > 1 && fields[1] == "--"+f.Name) {
				found++
			}
		}
		assert.Equal(t, 1, found, f.Name)
	}
}

func TestHelpWidth(t *testing.T) {
	for i, line := range strings.Split(Help("1.2.3", someCommands), "\n") {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), helpWidth, "line %d: %s", i+1, line)
		assert.Equal(t, strings.TrimRight(line, " \t"), line, "line %d", i+1)
	}
}

func TestHelpNamesOnlyTheCommandsThatExist(t *testing.T) {
	none := Help("1.2.3", nil)
	assert.NotContains(t, none, "Commands:")
	assert.NotContains(t, none, "doctor")
	some := Help("1.2.3", someCommands)
	assert.Contains(t, some, "  doctor ")
	assert.Contains(t, some, "  ps ")
	assert.NotContains(t, some, "  gc ")
}

func TestWrapKeepsLongWords(t *testing.T) {
	var b strings.Builder
	long := strings.Repeat("x", helpWidth+20)
	wrap(&b, "  ", "    ", "a "+long+" b")
	assert.Equal(t, "  a\n    "+long+"\n    b\n", b.String())
}
