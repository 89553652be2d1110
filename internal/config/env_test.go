package config

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// samples holds two valid values of every flag, so that a test can tell which
// of two sources won. A switch has its "=" form.
var samples = map[string][2]string{
	"provider": {"claude", "gemini"}, "timeout": {"11", "12"},
	"model": {"m1", "m2"}, "model_reasoning_effort": {"low", "high"}, "sandbox_mode": {"read-only", "danger-full-access"},
	"approval_policy": {"on-request", "on-failure"}, "codex-workspace-network": {"true", "false"}, "goal": {"g1", "g2"},
	"codex_idle_timeout": {"11", "12"}, "codex_cancel_grace": {"11", "12"}, "codex_status_interval": {"11", "12"},
	"codex_models": {"a,b", "c"}, "claude_model": {"c1", "c2"}, "claude_effort": {"e1", "e2"}, "trust_workspace": {"true", "false"},
	"max_result_chars":      {"2000", "3000"},
	"browser_lease_command": {"l1 x", `["l2"]`}, "browser_command": {"b1 x", `["b2"]`}, "browser_idle_timeout": {"11", "12"},
	"browser_viewport": {"10x10", "20x20"}, "browser_app_port": {"11", "12"}, "browser_log_file": {"/l1", "/l2"},
	"browser_network": {"none", "bridge"}, "browser_image": {"i1", "i2"},
	"browser_allowed_url_pattern": {"p1", "p2"},
	"runtime":                     {"docker", "local"}, "docker_host": {"unix:///a", "unix:///b"}, "image": {"i1", "i2"},
	"network": {"none", "container:x"}, "user": {"1:1", "2:2"}, "memory": {"1g", "2g"}, "cpus": {"1", "3"}, "pids-limit": {"64", "65"},
	"stop_grace": {"11", "12"}, "lifeline_timeout": {"11", "12"}, "warm": {"1", "2"}, "self-container": {"s1", "s2"},
	"oci_runtime": {"runsc", "runc"}, "workspace": {"/w1", "/w2"}, "workspace_access": {"rw", "ro"}, "env": {"E1", "E2"},
	"ca_file": {"/c1", "/c2"}, "auth_source": {"/a1", "/a2"}, "model_base_url": {"http://a", "https://b"},
	"handshake_timeout": {"11", "12"}, "stdio_idle_timeout": {"11", "12"}, "parent_watchdog": {"11", "12"},
	"max_message_bytes": {"1m", "2m"}, "log_level": {"debug", "error"}, "log_format": {"text", "json"},
}

// withProvider puts a command line under the provider that the flag is for.
func withProvider(f Flag, argv ...string) []string {
	if f.Group != GroupBrowser {
		return argv
	}
	return append([]string{"--provider", "browser"}, argv...)
}

func mustParse(t *testing.T, env map[string]string, argv ...string) Options {
	t.Helper()
	o, err := Parse(argv, environment(env))
	require.NoError(t, err, "%q %v", argv, env)
	return o
}

// TestEverySpelling is the equivalence of hyphen and underscore, and of the
// two forms of giving a value, for every flag.
func TestEverySpelling(t *testing.T) {
	for _, f := range Flags() {
		if f.action != ActionServe {
			continue
		}
		pair, known := samples[f.Name]
		require.True(t, known, "no sample for --%s", f.Name)
		t.Run(f.Name, func(t *testing.T) {
			first := mustParse(t, nil, withProvider(f, "--"+f.Name+"="+pair[0])...)
			second := mustParse(t, nil, withProvider(f, "--"+f.Name+"="+pair[1])...)
			assert.NotEqual(t, first, second, "the flag does something")
			hyphens, underscores := strings.ReplaceAll(f.Name, "_", "-"), fold(f.Name)
			for _, spelling := range []string{f.Name, hyphens, underscores} {
				assert.Equal(t, second, mustParse(t, nil, withProvider(f, "--"+spelling+"="+pair[1])...))
				if f.Value != "" {
					assert.Equal(t, second, mustParse(t, nil, withProvider(f, "--"+spelling, pair[1])...))
					_, err := Parse(withProvider(f, "--"+spelling), noEnv)
					assert.EqualError(t, err, "--"+f.Name+" requires a value")
				}
			}
		})
	}
	assert.Equal(t, ActionHelp, mustParse(t, nil, "--help").Action)
}

func TestEnvironmentPrecedence(t *testing.T) {
	for _, f := range Flags() {
		if f.Env == "" {
			continue
		}
		pair := samples[f.Name]
		t.Run(f.Env, func(t *testing.T) {
			byFlag := mustParse(t, nil, withProvider(f, "--"+f.Name+"="+pair[0])...)
			other := mustParse(t, nil, withProvider(f, "--"+f.Name+"="+pair[1])...)
			env := map[string]string{f.Env: pair[1]}
			assert.Equal(t, other, mustParse(t, env, withProvider(f)...), "the variable is as the flag")
			assert.Equal(t, byFlag, mustParse(t, env, withProvider(f, "--"+f.Name+"="+pair[0])...), "the flag wins")
		})
	}
}

func TestEnvironmentNamesOfOurFlags(t *testing.T) {
	for _, f := range Flags() {
		if f.Env == "" || f.Name == "codex-workspace-network" {
			continue
		}
		assert.Equal(t, "MCP_AGENTS_"+strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")), f.Env)
	}
}

func TestInvalidEnvironmentNamesTheVariable(t *testing.T) {
	browser := []string{"--provider", "browser"}
	for name, tc := range map[string]struct {
		argv  []string
		value string
		text  string
	}{
		"MCP_AGENTS_MEMORY":                {nil, "much", "MCP_AGENTS_MEMORY must be a size"},
		"MCP_AGENTS_TRUST_WORKSPACE":       {nil, "yes", "MCP_AGENTS_TRUST_WORKSPACE must be true or false"},
		"MCP_AGENTS_ENV":                   {nil, "A,B=c", "MCP_AGENTS_ENV must be the name of an environment variable"},
		"MCP_AGENTS_BROWSER_IDLE_TIMEOUT":  {browser, "-1", "MCP_AGENTS_BROWSER_IDLE_TIMEOUT must be a non-negative number"},
		"MCP_AGENTS_BROWSER_VIEWPORT":      {browser, "big", "MCP_AGENTS_BROWSER_VIEWPORT must use positive WxH dimensions"},
		"MCP_AGENTS_BROWSER_APP_PORT":      {browser, "0", "MCP_AGENTS_BROWSER_APP_PORT must be an integer from 1 to 65535"},
		"MCP_AGENTS_BROWSER_LOG_FILE":      {browser, " ", "MCP_AGENTS_BROWSER_LOG_FILE must not be blank"},
		"MCP_AGENTS_BROWSER_LEASE_COMMAND": {browser, "[1]", "browser lease command JSON argv must be a nonempty string array"},
		"MCP_AGENTS_BROWSER_COMMAND":       {browser, "''", "browser command must contain an executable"},
		"MCP_AGENTS_BROWSER_ALLOWED_URL_PATTERN": {browser, `["a",""]`,
			"MCP_AGENTS_BROWSER_ALLOWED_URL_PATTERN must be one pattern or a JSON array of nonempty strings"},
	} {
		_, err := Parse(tc.argv, environment(map[string]string{name: tc.value}))
		assert.ErrorContains(t, err, tc.text)
	}
}

func TestVariablesOfOtherProvidersAreNotRead(t *testing.T) {
	wrong := map[string]string{"MCP_AGENTS_BROWSER_VIEWPORT": "x", "MCP_AGENTS_BROWSER_LEASE_COMMAND": "'"}
	mustParse(t, wrong, "--provider", "claude")
	mustParse(t, wrong)
	network := map[string]string{"MCP_AGENTS_CODEX_WORKSPACE_NETWORK_ACCESS": "maybe"}
	mustParse(t, network, "--provider", "gemini")
	assert.False(t, mustParse(t, network, "--codex_workspace_network=false").Codex.WorkspaceNetwork)
	_, err := Parse(nil, environment(network))
	assert.EqualError(t, err, "MCP_AGENTS_CODEX_WORKSPACE_NETWORK_ACCESS must be true or false")
}

func TestEmptyVariables(t *testing.T) {
	empty := make(map[string]string)
	for _, f := range Flags() {
		if f.Env != "" && !f.emptyEnv {
			empty[f.Env] = ""
		}
	}
	assert.Equal(t, mustParse(t, nil), mustParse(t, empty), "empty is unset")
	_, err := Parse(nil, environment(map[string]string{"MCP_AGENTS_CODEX_WORKSPACE_NETWORK_ACCESS": ""}))
	assert.Error(t, err, "this one is strict")
}

func TestListsInTheEnvironment(t *testing.T) {
	list := strings.Join([]string{"/a", "/b c", ""}, string(filepath.ListSeparator))
	o := mustParse(t, map[string]string{"MCP_AGENTS_WORKSPACE": list, "MCP_AGENTS_ENV": "A, B,,C"})
	assert.Equal(t, []string{"/a", "/b c"}, o.Sandbox.Workspaces)
	assert.Equal(t, []string{"A", "B", "C"}, o.Sandbox.Env)

	for value, want := range map[string][]string{
		"":               nil,
		"  ":             nil,
		"[]":             nil,
		" http://a/* ":   {"http://a/*"},
		"a,b":            {"a,b"},
		` ["a", "b,c"] `: {"a", "b,c"},
	} {
		vars := map[string]string{"MCP_AGENTS_BROWSER_ALLOWED_URL_PATTERN": value}
		assert.Equal(t, want, mustParse(t, vars, "--provider=browser").Browser.AllowedURLPatterns, "%q", value)
		assert.Equal(t, []string{"x"},
			mustParse(t, vars, "--provider=browser", "--browser_allowed_url_pattern=x").Browser.AllowedURLPatterns)
	}
}

func TestTunables(t *testing.T) {
	vars := map[string]string{
		"MCP_AGENTS_CODEX_TERMINAL_GRACE_MS": "80", "MCP_AGENTS_CODEX_CANCEL_GRACE_MS": "100",
		"MCP_AGENTS_CODEX_FLUSH_STALL_MS": "400", "MCP_AGENTS_CODEX_PROGRESS_INTERVAL_MS": "20",
		"MCP_AGENTS_CODEX_STATUS_INTERVAL_MS": "99999999999999", "MCP_AGENTS_CODEX_WAIT_INTERVAL_MS": "0",
	}
	c := mustParse(t, vars).Codex
	assert.Equal(t, 80*time.Millisecond, c.TerminalGrace)
	assert.Equal(t, 100*time.Millisecond, c.CancelGrace)
	assert.Equal(t, 30*time.Second, c.ClientGoneGrace, "never less")
	assert.Equal(t, 400*time.Millisecond, c.FlushStall)
	assert.Equal(t, 20*time.Millisecond, c.ProgressInterval)
	assert.Equal(t, MaxTimer, c.StatusInterval)
	assert.Zero(t, c.WaitInterval)

	c = mustParse(t, vars, "--codex_cancel_grace=40", "--codex-status-interval=1.5").Codex
	assert.Equal(t, 40*time.Second, c.CancelGrace, "the flag wins")
	assert.Equal(t, 80*time.Second, c.ClientGoneGrace)
	assert.Equal(t, 1500*time.Millisecond, c.StatusInterval)

	vars["MCP_AGENTS_CODEX_CLIENT_GONE_GRACE_MS"] = "50"
	assert.Equal(t, 50*time.Millisecond, mustParse(t, vars).Codex.ClientGoneGrace)

	want := mustParse(t, nil).Codex
	for name := range vars {
		for _, bad := range []string{"", "-1", "x", "1e3", "NaN"} {
			assert.Equal(t, want, mustParse(t, map[string]string{name: bad}).Codex, "%s=%q", name, bad)
		}
	}
}

func TestLeaseHelperOfTheLocalRuntime(t *testing.T) {
	assert.Nil(t, mustParse(t, nil, "--provider=browser").Browser.LeaseCommand, "docker has the embedded lease")
	vars := map[string]string{"MCP_AGENTS_RUNTIME": "local", "MCP_AGENTS_BROWSER_LEASE_COMMAND": "lease"}
	assert.Equal(t, []string{"lease"}, mustParse(t, vars, "--provider=browser").Browser.LeaseCommand)
	mustParse(t, map[string]string{"MCP_AGENTS_RUNTIME": "local"})
}
