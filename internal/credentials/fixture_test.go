package credentials

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// chatgpt is a credential as the Codex CLI writes it, with one generation of tokens.
func chatgpt(generation int) []byte {
	return fmt.Appendf(nil, `{"auth_mode":"chatgpt","OPENAI_API_KEY":null,"tokens":{"id_token":"id-%[1]d",`+
		`"access_token":"access-%[1]d","refresh_token":"refresh-%[1]d","account_id":"account"},`+
		`"last_refresh":"2026-01-02T03:04:05Z"}`, generation)
}

// noVariables is an environment without any key or directory.
func noVariables(string) string { return "" }

func variables(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// newHome is a login directory with a credential; nil leaves it empty.
func newHome(t *testing.T, credential []byte) (Source, string) {
	t.Helper()
	dir := t.TempDir()
	if credential != nil {
		write(t, filepath.Join(dir, "auth.json"), credential)
	}
	src := Codex(dir)
	src.Getenv = noVariables
	return src, dir
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, data, 0o600))
}

func take(t *testing.T, src Source) *Snapshot {
	t.Helper()
	s, err := Take(t.Context(), src)
	require.NoError(t, err)
	return s
}

// requireCanonical checks the user's file, and that nothing temporary is beside it.
func requireCanonical(t *testing.T, dir string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(dir, "auth.json"))
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
	assert.Empty(t, temporary(t, dir), "a temporary file holds a login")
}

func temporary(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".auth.json.mcp-agents-") {
			names = append(names, e.Name())
		}
	}
	return names
}
