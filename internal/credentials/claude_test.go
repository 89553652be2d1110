package credentials

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func claudeSource(dir string, env map[string]string) Source {
	src := Claude(dir)
	src.Getenv = func(name string) string { return env[name] }
	return src
}

func TestClaudeLogin(t *testing.T) {
	for name, tt := range map[string]struct {
		content string // "" means no file
		missing string // of the reason; "" means that it is a login
	}{
		"oauth":           {`{"claudeAiOauth":{"accessToken":"a","refreshToken":"r","expiresAt":4102444800000}}`, ""},
		"no file":         {"", "does not exist"},
		"no token":        {`{"claudeAiOauth":{"accessToken":"","scopes":["x"]}}`, "holds no credential"},
		"not an object":   {`[]`, "is not a JSON object"},
		"not json":        {`token`, "is not valid JSON"},
		"of another tool": {`{"mcpOAuth":{}}`, "holds no credential"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if tt.content != "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, ".credentials.json"), []byte(tt.content), 0o600))
			}
			s, err := Take(t.Context(), claudeSource(dir, nil))
			require.NoError(t, err)
			if tt.missing == "" {
				require.NoError(t, s.Missing())
				require.Len(t, s.Files(), 1)
				assert.True(t, s.expires.After(time.Now()), "the end of the token is read")
				return
			}
			require.ErrorContains(t, s.Missing(), "Claude Code login is missing")
			require.ErrorContains(t, s.Missing(), tt.missing)
			require.ErrorContains(t, s.Missing(), "CLAUDE_CODE_OAUTH_TOKEN")
		})
	}
}

func TestClaudeConfigKeepsTheMinimum(t *testing.T) {
	home := t.TempDir()
	config := `{"oauthAccount":{"emailAddress":"a@b"},"primaryApiKey":"sk","projects":{"/secret":{}},"mcpServers":{"x":{}},"history":["h"]}`
	require.NoError(t, os.WriteFile(filepath.Join(home, ".claude.json"), []byte(config), 0o600))
	file, hasKey, err := ClaudeConfig(t.Context(), claudeSource("", map[string]string{"HOME": home}))
	require.NoError(t, err)
	assert.True(t, hasKey)
	assert.Equal(t, ".claude.json", file.Name)
	assert.JSONEq(t, `{"oauthAccount":{"emailAddress":"a@b"},"primaryApiKey":"sk","hasCompletedOnboarding":true}`, string(file.Data))

	// In a named directory it lies beside the credentials.
	named := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(named, ".claude.json"), []byte(`{"primaryApiKey":7}`), 0o600))
	for _, src := range []Source{claudeSource(named, nil), claudeSource("", map[string]string{"CLAUDE_CONFIG_DIR": named})} {
		file, hasKey, err = ClaudeConfig(t.Context(), src)
		require.NoError(t, err)
		assert.False(t, hasKey, "a number is no key")
		assert.Contains(t, string(file.Data), "primaryApiKey")
	}
}

func TestClaudeConfigThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	src := claudeSource(dir, nil)
	file, hasKey, err := ClaudeConfig(t.Context(), src)
	require.NoError(t, err, "an absent file is none")
	assert.False(t, hasKey)
	assert.JSONEq(t, `{"hasCompletedOnboarding":true}`, string(file.Data))

	path := filepath.Join(dir, ".claude.json")
	require.NoError(t, os.WriteFile(path, []byte("[]"), 0o600))
	file, _, err = ClaudeConfig(t.Context(), src)
	require.ErrorContains(t, err, "is not a JSON object")
	assert.JSONEq(t, `{"hasCompletedOnboarding":true}`, string(file.Data))

	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	_, _, err = ClaudeConfig(t.Context(), src)
	require.ErrorIs(t, err, errNotRegular)
}
