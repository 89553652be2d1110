package codex

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// home is the private home of a local Codex, and its configuration.
func (c *client) home() (dir, config string) {
	c.t.Helper()
	found, err := filepath.Glob(filepath.Join(c.cmd.Dir, "tmp", "codex-homes", "mcp-agents-codex-*"))
	require.NoError(c.t, err)
	for _, f := range found {
		if configs, _ := filepath.Glob(filepath.Join(f, "config.toml")); len(configs) == 1 {
			b, err := os.ReadFile(configs[0])
			require.NoError(c.t, err)
			return f, string(b)
		}
	}
	require.FailNow(c.t, "no private home", "%v", found)
	return "", ""
}

func mode(t *testing.T, path string) os.FileMode {
	st, err := os.Stat(path)
	require.NoError(t, err)
	return st.Mode().Perm()
}

// local is a setting with a source configuration, which may be empty.
func local(t *testing.T, config string) *setting {
	if runtime.GOOS != "linux" {
		t.Skip("the local runtime needs Linux")
	}
	s := newSetting(t, "local", "")
	s.env = quick
	if config != "" {
		require.NoError(t, os.WriteFile(filepath.Join(s.login, "config.toml"), []byte(config), 0o600))
	}
	return s
}

func TestPrivateHome(t *testing.T) {
	t.Run("71 place, modes and removal", func(t *testing.T) {
		s := local(t, "")
		require.NoError(t, os.WriteFile(filepath.Join(s.login, "models_cache.json"), []byte("{}"), 0o644))
		c := s.start(t)
		dir, config := c.home()
		assert.Equal(t, os.FileMode(0o700), mode(t, filepath.Dir(dir)))
		assert.Equal(t, os.FileMode(0o700), mode(t, dir))
		for _, name := range []string{"auth.json", "config.toml", "models_cache.json"} {
			assert.Equal(t, os.FileMode(0o600), mode(t, filepath.Join(dir, name)), name)
		}
		assert.NotContains(t, config, "mcp_servers")
		require.Zero(t, c.leave(20*time.Second))
		assert.NoDirExists(t, dir)
	})
	const tier, feature = "service_tier = \"fast\"\n", "[features]\nfast_mode = true\n"
	tests := []struct {
		name, source string
		args, env    []string
		lines, none  []string
	}{
		{name: "72 88 network by default", env: []string{"FAKECODEX_VERSION=unknown"}, lines: []string{"network_access = true", "[agents]"}},
		{name: "73 85 not by the flag", args: []string{"--codex-workspace-network", "false"}, env: []string{"FAKECODEX_VERSION=codex-cli 0.130.0"},
			lines: []string{"network_access = false"}, none: []string{"[agents]"}},
		{name: "74 86 not by the variable", env: []string{"MCP_AGENTS_CODEX_WORKSPACE_NETWORK_ACCESS=false", "FAKECODEX_VERSION=codex-cli 0.144.9"},
			lines: []string{"network_access = false"}, none: []string{"[agents]"}},
		{name: "75 87 the flag wins", args: []string{"--codex-workspace-network", "true"},
			env: []string{"MCP_AGENTS_CODEX_WORKSPACE_NETWORK_ACCESS=false", "FAKECODEX_VERSION=codex 1.2.3"}, lines: []string{"network_access = true", "[agents]"}},
		{name: "76 Fast mode", source: "# service_tier = \"flex\"\n" + tier + "x = \"\"\"\n[features]\nfast_mode = false\n\"\"\"\n[profiles.p]\nservice_tier = \"flex\"\n" + feature,
			lines: []string{"service_tier = \"fast\"", "fast_mode = true"}},
		{name: "77 the tier only", source: tier, none: []string{"service_tier", "fast_mode"}},
		{name: "78 the feature only", source: feature, none: []string{"service_tier", "fast_mode"}},
		{name: "79 the feature is off", source: tier + "[features]\nfast_mode = false\n", none: []string{"service_tier", "fast_mode"}},
		{name: "80 another tier", source: "service_tier = \"flex\"\n" + feature, none: []string{"service_tier", "fast_mode"}},
		{name: "81 decoys", source: "# " + tier + "x = '''\n" + tier + "'''\n[a.features]\nfast_mode = true\n" + feature, none: []string{"service_tier", "fast_mode"}},
		{name: "82 the tier twice", source: tier + tier + feature, none: []string{"service_tier", "fast_mode"}},
		{name: "83 the feature twice", source: tier + feature + "fast_mode = true\n", none: []string{"service_tier", "fast_mode"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := local(t, tt.source)
			s.args, s.env = tt.args, append(s.env, tt.env...)
			c := s.start(t)
			_, config := c.home()
			lines := strings.Split(config, "\n")
			for _, want := range tt.lines {
				assert.Contains(t, lines, want)
			}
			for _, none := range tt.none {
				assert.NotContains(t, config, none)
			}
			require.Zero(t, c.leave(20*time.Second))
		})
	}
	t.Run("84 an unreadable configuration", func(t *testing.T) {
		s := local(t, "")
		require.NoError(t, os.Mkdir(filepath.Join(s.login, "config.toml"), 0o700))
		c := s.start(t)
		_, config := c.home()
		assert.NotContains(t, config, "fast")
		assert.Contains(t, c.stderr.String(), "failed to read source Codex Fast-mode config")
		require.Zero(t, c.leave(20*time.Second))
	})
}

func TestLoginWriteBack(t *testing.T) {
	const before = `{"tokens":{"access_token":"a1","refresh_token":"r1","id_token":"i","account_id":"acc"},"last_refresh":"2026-01-01T00:00:00Z"}`
	rotated := strings.NewReplacer("a1", "a2", "r1", "r2", "2026-01", "2026-02").Replace(before)
	start := func(t *testing.T) (*setting, *client, string) {
		s := local(t, "")
		auth := filepath.Join(s.login, "auth.json")
		require.NoError(t, os.WriteFile(auth, []byte(before), 0o644))
		stale := filepath.Join(s.login, ".auth.json.mcp-agents-1-stale.tmp")
		require.NoError(t, os.WriteFile(stale, []byte("stale"), 0o600))
		c := s.start(t)
		dir, _ := c.home()
		return s, c, filepath.Join(dir, "auth.json")
	}
	t.Run("89 a rotated login", func(t *testing.T) {
		s, c, inside := start(t)
		auth := filepath.Join(s.login, "auth.json")
		require.NoError(t, os.WriteFile(inside, []byte(rotated), 0o600))
		require.Zero(t, c.leave(20*time.Second))
		b, err := os.ReadFile(auth)
		require.NoError(t, err)
		assert.Equal(t, rotated, string(b))
		assert.Equal(t, os.FileMode(0o600), mode(t, auth))
		assert.Contains(t, c.stderr.String(), "persisted refreshed Codex auth.json back to CODEX_HOME")
	})
	t.Run("90 a newer login of the user", func(t *testing.T) {
		s, c, inside := start(t)
		newer := strings.ReplaceAll(before, "a1", "newer")
		require.NoError(t, os.WriteFile(filepath.Join(s.login, "auth.json"), []byte(newer), 0o600))
		require.NoError(t, os.WriteFile(inside, []byte(rotated), 0o600))
		require.Zero(t, c.leave(20*time.Second))
		b, err := os.ReadFile(filepath.Join(s.login, "auth.json"))
		require.NoError(t, err)
		assert.Equal(t, newer, string(b))
		assert.Contains(t, c.stderr.String(), "canonical auth changed")
	})
	t.Run("158 159 after the login was refused", func(t *testing.T) {
		s, c, inside := start(t)
		r := c.answer(c.turn(script(`{"do":"event","type":"error","fields":{"codex_error_info":"unauthorized","message":"m"}}`, `{"do":"fail","text":"x"}`), nil))
		assert.Equal(t, "codex_auth_invalidated", r.field("code"))
		require.NoError(t, os.WriteFile(inside, []byte(rotated), 0o600))
		require.Zero(t, c.leave(20*time.Second))
		b, err := os.ReadFile(filepath.Join(s.login, "auth.json"))
		require.NoError(t, err)
		assert.Equal(t, before, string(b))
		assert.Contains(t, c.stderr.String(), "skipped Codex auth.json write-back after authentication invalidation")
	})
}
