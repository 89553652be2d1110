package config

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func standard() Config {
	return Config{
		Model: "gpt-5.6-sol", ReasoningEffort: "xhigh", ApprovalPolicy: "never",
		SandboxMode: "workspace-write", WorkspaceNetwork: true, AgentsGate: true,
	}
}

func TestTOMLGolden(t *testing.T) {
	configs := map[string]func(*Config){
		"standard":   func(*Config) {},
		"no_network": func(c *Config) { c.WorkspaceNetwork = false },
		"fast":       func(c *Config) { c.Fast = true },
		"old_cli":    func(c *Config) { c.AgentsGate = false },
		"gateway":    func(c *Config) { c.BaseURL = "http://host.docker.internal:8080/v1" },
		"everything": func(c *Config) {
			c.Fast, c.BaseURL = true, "https://gateway.example/v1"
			c.ApprovalPolicy, c.SandboxMode = "on-request", "danger-full-access"
		},
		"strange_strings": func(c *Config) {
			c.Model = "a \"quoted\" back\\slash\n[features]\nfast_mode = true\r\t\b\f\x00\x1f\x7f"
			c.ReasoningEffort = "höchst 高 🚀 \u2028"
		},
		"empty": func(c *Config) { *c = Config{} },
	}
	for name, change := range configs {
		t.Run(name, func(t *testing.T) {
			c := standard()
			change(&c)
			golden := filepath.Join("testdata", name+".toml")
			if *update {
				require.NoError(t, os.WriteFile(golden, c.TOML(), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), string(c.TOML()))
		})
	}
}

// TestOrder pins what the golden files could be updated away from: the top-level keys come
// before any table, and what is ours comes last.
func TestOrder(t *testing.T) {
	c := standard()
	c.Fast, c.BaseURL = true, "http://localhost/v1"
	var keys []string
	for line := range strings.Lines(string(c.TOML())) {
		key, _, _ := strings.Cut(strings.TrimSpace(line), " = ")
		if key != "" {
			keys = append(keys, key)
		}
	}
	assert.Equal(t, []string{
		"model", "model_reasoning_effort", "service_tier", "approval_policy", "sandbox_mode", "web_search",
		"check_for_update_on_startup", "allow_login_shell", "openai_base_url",
		"[sandbox_workspace_write]", "network_access",
		"[history]", "persistence",
		"[features]", "apps", "hooks", "plugins", "multi_agent", "skill_mcp_dependency_install", "fast_mode",
		"[agents]", "enabled",
		"[analytics]", "enabled",
		"[shell_environment_policy]", "ignore_default_excludes",
	}, keys)
}

// TestNoServers: an inherited server would run with the copied login.
func TestNoServers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var doc map[string]any
		require.NoError(t, toml.Unmarshal(anyConfig(t).TOML(), &doc))
		require.NotContains(t, doc, "mcp_servers")
	})
}

func anyConfig(t *rapid.T) Config {
	return Config{
		Model:            rapid.String().Draw(t, "model"),
		ReasoningEffort:  rapid.String().Draw(t, "effort"),
		ApprovalPolicy:   rapid.String().Draw(t, "approval"),
		SandboxMode:      rapid.String().Draw(t, "sandbox"),
		WorkspaceNetwork: rapid.Bool().Draw(t, "network"),
		Fast:             rapid.Bool().Draw(t, "fast"),
		AgentsGate:       Gate(rapid.Bool().Draw(t, "gate")),
		BaseURL:          rapid.String().Draw(t, "url"),
	}
}

func TestTOMLParsesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		want := map[string]any{
			"model": c.Model, "model_reasoning_effort": c.ReasoningEffort,
			"approval_policy": c.ApprovalPolicy, "sandbox_mode": c.SandboxMode,
			"web_search": "cached", "check_for_update_on_startup": false, "allow_login_shell": false,
			"sandbox_workspace_write":  map[string]any{"network_access": c.WorkspaceNetwork},
			"history":                  map[string]any{"persistence": "none"},
			"analytics":                map[string]any{"enabled": false},
			"shell_environment_policy": map[string]any{"ignore_default_excludes": false},
		}
		features := map[string]any{
			"apps": false, "hooks": false, "plugins": false, "multi_agent": false, "skill_mcp_dependency_install": false,
		}
		want["features"] = features
		if c.Fast {
			want["service_tier"], features["fast_mode"] = "fast", true
		}
		if c.AgentsGate {
			want["agents"] = map[string]any{"enabled": false}
		}
		if c.BaseURL != "" {
			want["openai_base_url"] = c.BaseURL
		}
		var got map[string]any
		require.NoError(t, toml.Unmarshal(c.TOML(), &got))
		require.Equal(t, want, got)
		require.Equal(t, c.Fast, FastOptIn(c.TOML()), "no string value reads as an opt-in")
	})
}

func TestQuoteIsBothJSONAndTOML(t *testing.T) {
	check := func(t require.TestingT, s string) {
		quoted := quote(s)
		require.NotContains(t, quoted, "\n")
		want := strings.ToValidUTF8(s, "\ufffd")
		if utf8.ValidString(s) {
			var fromJSON string
			require.NoError(t, json.Unmarshal([]byte(quoted), &fromJSON))
			require.Equal(t, want, fromJSON)
		}
		var fromTOML struct{ K string }
		require.NoError(t, toml.Unmarshal([]byte("K = "+quoted), &fromTOML))
		require.Equal(t, want, strings.ToValidUTF8(fromTOML.K, "\ufffd"))
	}
	for r := range rune(0x200) { // every control character, not only those that chance finds
		check(t, "a"+string(r)+"b")
	}
	check(t, "\xff")
	check(t, "\U0010ffff\u2028\u202e")
	rapid.Check(t, func(t *rapid.T) { check(t, rapid.String().Draw(t, "s")) })
}

func TestValidate(t *testing.T) {
	for _, policy := range []string{"never", "on-request", "on-failure"} {
		assert.NoError(t, ValidateApproval(policy))
	}
	for _, mode := range []string{"read-only", "workspace-write", "danger-full-access"} {
		assert.NoError(t, ValidateSandbox(mode))
	}
	assert.EqualError(t, ValidateApproval("untrusted"), `approval policy "untrusted" is not one that Codex takes: `+
		`set --approval_policy to one of never, on-request, on-failure`)
	assert.EqualError(t, ValidateSandbox("Read-Only"), `sandbox mode "Read-Only" is not one that Codex takes: `+
		`set --sandbox_mode to one of read-only, workspace-write, danger-full-access`)
	assert.Error(t, ValidateApproval(""))
	assert.Error(t, ValidateSandbox("workspace-write "))
}
