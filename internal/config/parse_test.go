package config

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// environment makes a look-up of a fixed environment.
func environment(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

var noEnv = environment(nil)

func usageError(t *testing.T, err error) *UsageError {
	t.Helper()
	var usage *UsageError
	require.ErrorAs(t, err, &usage)
	return usage
}

// TestChecklist is the command-line part of the behavioural checklist, each
// row under its number.
func TestChecklist(t *testing.T) {
	help := Help("1.2.3", nil)
	type row struct {
		number string
		argv   []string
		env    map[string]string
		action Action
		want   string // part of the help text, or the whole of the report on stderr
	}
	rows := []row{
		{number: "01 help prints usage", argv: []string{"--help"}, action: ActionHelp, want: "Usage:"},
		{number: "02 help shows the model", argv: []string{"--help"}, action: ActionHelp, want: "gpt-5.6-sol"},
		{number: "03 help shows the effort", argv: []string{"--help"}, action: ActionHelp, want: "xhigh"},
		{number: "04 help shows the sandbox mode", argv: []string{"--help"}, action: ActionHelp, want: "workspace-write"},
		{number: "05 help shows the policy", argv: []string{"--help"}, action: ActionHelp, want: "never"},
		{number: "06 help shows the network flag", argv: []string{"--help"}, action: ActionHelp, want: "--codex-workspace-network"},
		{number: "07 help shows codex_idle_timeout", argv: []string{"--help"}, action: ActionHelp, want: "codex_idle_timeout"},
		{number: "08 help shows codex_status_interval", argv: []string{"--help"}, action: ActionHelp, want: "codex_status_interval"},
		{number: "09 help shows goal", argv: []string{"--help"}, action: ActionHelp, want: "Persistent objective"},
		{number: "10 help shows the lease command", argv: []string{"--help"}, action: ActionHelp, want: "browser_lease_command"},
		{number: "11 help shows the npx fallback", argv: []string{"--help"}, action: ActionHelp, want: "npx chrome-devtools-mcp@latest"},
		{number: "12 help shows the timeouts", argv: []string{"--help"}, action: ActionHelp, want: "claude 900, browser 600, gemini 300"},
		{number: "13 -h", argv: []string{"-h"}, action: ActionHelp, want: "Usage:"},
		{number: "14 --version", argv: []string{"--version"}, action: ActionVersion},
		{number: "15 -v", argv: []string{"-v"}, action: ActionVersion},
		{number: "16 unknown option", argv: []string{"--bogus"}, want: "error: unknown option: --bogus\n"},
		{number: "17 provider", argv: []string{"--provider"}, want: "error: --provider requires a value\n"},
		{number: "18 model", argv: []string{"--model"}, want: "error: --model requires a value\n"},
		{number: "19 effort", argv: []string{"--model_reasoning_effort"}, want: "error: --model_reasoning_effort requires a value\n"},
		{number: "20 sandbox mode", argv: []string{"--sandbox_mode"}, want: "error: --sandbox_mode requires a value\n"},
		{number: "21 approval policy", argv: []string{"--approval_policy"}, want: "error: --approval_policy requires a value\n"},
		{number: "22 network without a value", argv: []string{"--codex-workspace-network"}, want: "error: --codex-workspace-network requires a value\n"},
		{number: "23 network invalid", argv: []string{"--codex-workspace-network", "maybe"}, want: "error: --codex-workspace-network must be true or false\n"},
		{number: "24 network invalid inline", argv: []string{"--codex-workspace-network=TRUE"}, want: "error: --codex-workspace-network must be true or false\n"},
		{number: "25 network invalid in the environment", env: map[string]string{"MCP_AGENTS_CODEX_WORKSPACE_NETWORK_ACCESS": "1"},
			want: "error: MCP_AGENTS_CODEX_WORKSPACE_NETWORK_ACCESS must be true or false\n"},
		{number: "26 goal", argv: []string{"--goal"}, want: "error: --goal requires a value\n"},
		{number: "27 timeout", argv: []string{"--timeout"}, want: "error: --timeout requires a value\n"},
		{number: "28 timeout zero", argv: []string{"--timeout", "0"}, want: "error: --timeout must be a positive number\n"},
		{number: "29 timeout negative", argv: []string{"--timeout", "-5"}, want: "error: --timeout must be a positive number\n"},
		{number: "30 timeout no number", argv: []string{"--timeout", "abc"}, want: "error: --timeout must be a positive number\n"},
		{number: "31 idle without a value", argv: []string{"--codex_idle_timeout"}, want: "error: --codex_idle_timeout requires a value\n"},
		{number: "32 idle no number", argv: []string{"--codex_idle_timeout", "abc"}, want: "error: --codex_idle_timeout must be a non-negative number\n"},
		{number: "33 idle negative", argv: []string{"--codex_idle_timeout", "-1"}, want: "error: --codex_idle_timeout must be a non-negative number\n"},
		{number: "34 interval without a value", argv: []string{"--codex_status_interval"}, want: "error: --codex_status_interval requires a value\n"},
		{number: "35 interval no number", argv: []string{"--codex_status_interval", "abc"}, want: "error: --codex_status_interval must be a non-negative number\n"},
		{number: "36 interval negative", argv: []string{"--codex_status_interval", "-1"}, want: "error: --codex_status_interval must be a non-negative number\n"},
		{number: "37 lease command without a value", argv: []string{"--browser_lease_command"}, want: "error: --browser_lease_command requires a value\n"},
		{number: "38 browser command without a value", argv: []string{"--browser_command"}, want: "error: --browser_command requires a value\n"},
		{number: "39 browser idle negative", argv: []string{"--provider", "browser", "--browser_idle_timeout", "-1"},
			want: "error: --browser_idle_timeout must be a non-negative number\n"},
		{number: "40 viewport malformed", argv: []string{"--provider", "browser", "--browser_viewport", "1440"},
			want: "error: MCP_AGENTS_BROWSER_VIEWPORT must use positive WxH dimensions\n"},
		{number: "41 app port too high", argv: []string{"--provider", "browser", "--browser_app_port", "70000"},
			want: "error: --browser_app_port must be an integer from 1 to 65535\n"},
		{number: "42 claude refuses browser flags", argv: []string{"--provider", "claude", "--browser_viewport", "800x600"},
			want: "error: --browser_viewport is only valid with --provider browser\n"},
		{number: "43 gemini refuses browser flags", argv: []string{"--browser_app_port", "80", "--browser_viewport", "800x600", "--provider", "gemini"},
			want: "error: --browser_app_port is only valid with --provider browser\n"},
		{number: "44 codex refuses browser flags", argv: []string{"--browser_lease_command", "'"},
			want: "error: --browser_lease_command is only valid with --provider browser\n"},
		{number: "45 browser without a lease helper", argv: []string{"--provider", "browser", "--runtime", "local"},
			want: "error: --browser_lease_command or MCP_AGENTS_BROWSER_LEASE_COMMAND is required with --runtime local\n"},
	}
	assert.Len(t, rows, 45)
	for _, r := range rows {
		t.Run(r.number, func(t *testing.T) {
			o, err := Parse(r.argv, environment(r.env))
			if r.action == ActionServe {
				assert.Equal(t, r.want, usageError(t, err).Report())
				return
			}
			require.NoError(t, err)
			assert.Equal(t, r.action, o.Action)
			if r.action == ActionHelp {
				assert.Contains(t, help, r.want)
			}
		})
	}
}

func TestOrderOfProblems(t *testing.T) {
	for name, tc := range map[string]struct {
		argv   string
		action Action
		report string
	}{
		"help before a mistake":               {argv: "--help --bogus", action: ActionHelp},
		"version before a mistake":            {argv: "-v --timeout 0", action: ActionVersion},
		"help ends before the provider check": {argv: "--provider nobody --help", action: ActionHelp},
		"mistake before help":                 {argv: "--bogus --help", report: "error: unknown option: --bogus\n"},
		"value before help":                   {argv: "--timeout 0 --help", report: "error: --timeout must be a positive number\n"},
		"help as a value":                     {argv: "--timeout --help", report: "error: --timeout must be a positive number\n"},
		"positional":                          {argv: "codex", report: "error: unknown option: codex\n"},
		"positional after a switch":           {argv: "--trust_workspace false", report: "error: unknown option: false\n"},
		"two dashes":                          {argv: "--", report: "error: unknown option: --\n"},
		"one dash":                            {argv: "-", report: "error: unknown option: -\n"},
		"long with one dash":                  {argv: "-help", report: "error: unknown option: -help\n"},
		"short with two":                      {argv: "--h", report: "error: unknown option: --h\n"},
		"abbreviation":                        {argv: "--prov codex", report: "error: unknown option: --prov\n"},
		"other case":                          {argv: "--Provider codex", report: "error: unknown option: --Provider\n"},
		"no echo behind =":                    {argv: "--api-key=sk-secret", report: "error: unknown option: --api-key\n"},
		"help takes no value":                 {argv: "--help=yes", report: "error: --help takes no value\n"},
		"switch with a wrong value":           {argv: "--trust_workspace=1", report: "error: --trust_workspace must be true or false\n"},
		"browser flag before unknown provider": {argv: "--provider nobody --browser_app_port 80",
			report: "error: --browser_app_port is only valid with --provider browser\n"},
		"unknown provider": {argv: "--provider nobody",
			report: "[mcp-agents] Unknown provider: nobody\n[mcp-agents] Available: claude, gemini, codex, browser\n"},
		"empty provider": {argv: "--provider=",
			report: "[mcp-agents] Unknown provider: \n[mcp-agents] Available: claude, gemini, codex, browser\n"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := Parse(strings.Fields(tc.argv), noEnv)
			if tc.report != "" {
				assert.Equal(t, tc.report, usageError(t, err).Report())
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.action, o.Action)
		})
	}
}

func TestDefaults(t *testing.T) {
	o, err := Parse(nil, environment(map[string]string{"HOME": "/home/u"}))
	require.NoError(t, err)
	assert.Equal(t, Options{
		Provider: ProviderCodex,
		Server: Server{HandshakeTimeout: 5 * time.Second, MaxMessageBytes: 16 << 20, MaxResultChars: 40000,
			LogLevel: slog.LevelInfo, LogFormat: LogText},
		Codex: Codex{
			Home: filepath.Join("/home/u", ".codex"), Models: []string{"gpt-5.6-sol", "gpt-5.6-terra"}, Model: "gpt-5.6-sol",
			ReasoningEffort: "xhigh", SandboxMode: "workspace-write", ApprovalPolicy: "never", WorkspaceNetwork: true,
			Timeout: 7200 * time.Second, IdleTimeout: 600 * time.Second, CancelGrace: 30 * time.Second,
			StatusInterval: 30 * time.Second, TerminalGrace: time.Second, ClientGoneGrace: 60 * time.Second,
			FlushStall: 60 * time.Second, ProgressInterval: time.Second, WaitInterval: 10 * time.Second,
		},
		Claude: Claude{Model: "claude-opus-4-8", Effort: "xhigh", Timeout: 900 * time.Second, JobTimeout: 7200 * time.Second},
		Gemini: Gemini{Timeout: 300 * time.Second},
		Browser: Browser{Viewport: "1440x900", Network: "bridge", IdleTimeout: 600 * time.Second,
			Timeout: 600 * time.Second},
		Sandbox: Sandbox{Runtime: RuntimeDocker, Access: AccessReadWrite, Network: "bridge", MemoryBytes: 4 << 30,
			NanoCPUs: 2e9, PidsLimit: 512, StopGrace: 5 * time.Second, LifelineTimeout: 60 * time.Second},
	}, o)
}

func TestTimeoutHoldsForEveryProvider(t *testing.T) {
	o, err := Parse([]string{"--timeout", "7"}, noEnv)
	require.NoError(t, err)
	for _, got := range []time.Duration{o.Codex.Timeout, o.Claude.Timeout, o.Claude.JobTimeout, o.Gemini.Timeout, o.Browser.Timeout} {
		assert.Equal(t, 7*time.Second, got)
	}
}

func TestValuesAreTakenAsTheyAre(t *testing.T) {
	o, err := Parse([]string{"--goal", "--help", "--model", "--goal=x", "--approval_policy=a=b"}, noEnv)
	require.NoError(t, err)
	assert.Equal(t, "--help", o.Codex.Goal)
	assert.Equal(t, "--goal=x", o.Codex.Model)
	assert.Equal(t, "a=b", o.Codex.ApprovalPolicy)
}

func TestRepetition(t *testing.T) {
	o, err := Parse([]string{"--model", "a", "--model=b", "--provider", "nobody", "--provider", "browser",
		"--workspace", "/a", "--workspace", "rel/b", "--env", "A", "--env=B",
		"--browser_allowed_url_pattern", "x,y", "--browser-allowed-url-pattern=[z"}, noEnv)
	require.NoError(t, err)
	assert.Equal(t, "b", o.Codex.Model)
	assert.Equal(t, []string{"/a", "rel/b"}, o.Sandbox.Workspaces)
	assert.Equal(t, []string{"A", "B"}, o.Sandbox.Env)
	assert.Equal(t, []string{"x,y", "[z"}, o.Browser.AllowedURLPatterns)

	_, err = Parse([]string{"--timeout", "0", "--timeout", "5"}, noEnv)
	assert.EqualError(t, err, "--timeout must be a positive number", "a later value does not mend an earlier one")
}

func TestEmptyMeansDefault(t *testing.T) {
	o, err := Parse([]string{"--model", "", "--model_reasoning_effort=", "--sandbox_mode=", "--approval_policy=", "--goal", " \t",
		"--codex_models", "", "--claude_model=", "--claude_effort="}, noEnv)
	require.NoError(t, err)
	plain, err := Parse(nil, noEnv)
	require.NoError(t, err)
	assert.Equal(t, plain, o)
}

func TestCodexModels(t *testing.T) {
	o, err := Parse([]string{"--codex_models", " m1, m2,m1"}, noEnv)
	require.NoError(t, err)
	assert.Equal(t, []string{"m1", "m2"}, o.Codex.Models)
	assert.Equal(t, "m1", o.Codex.Model)

	o, err = Parse([]string{"--model", "other", "--codex_models", "m1"}, noEnv)
	require.NoError(t, err)
	assert.Equal(t, "other", o.Codex.Model)

	_, err = Parse([]string{"--codex_models", "m1,,m2"}, noEnv)
	assert.EqualError(t, err, "--codex_models must be a comma-separated list of names")
}

func TestCodexHome(t *testing.T) {
	for want, vars := range map[string]map[string]string{
		"/c":                           {"CODEX_HOME": "/c", "HOME": "/h"},
		filepath.Join("/h", ".codex"):  {"CODEX_HOME": "", "HOME": "/h"},
		filepath.Join("/h2", ".codex"): {"HOME": "/h2"},
	} {
		o, err := Parse(nil, environment(vars))
		require.NoError(t, err)
		assert.Equal(t, want, o.Codex.Home)
	}
	o, err := Parse(nil, noEnv)
	require.NoError(t, err)
	assert.True(t, filepath.IsAbs(o.Codex.Home), o.Codex.Home)
}

func TestErrorsNeverEchoValues(t *testing.T) {
	const secret = "s3cr3t value"
	for _, f := range Flags() {
		if f.Value == "" {
			continue
		}
		_, err := Parse([]string{"--provider", "browser", "--" + f.Name, secret}, noEnv)
		if err != nil && f.Name != "provider" {
			assert.NotContains(t, err.Error(), "s3cr3t", f.Name)
		}
	}
	_, err := Parse([]string{"--env", "KEY=" + secret}, noEnv)
	assert.EqualError(t, err, "--env must be the name of an environment variable, without a value")
}

func TestHostileArgumentsStayOnOneLine(t *testing.T) {
	for _, arg := range []string{"a\nb", "\x1b[2J", "\xff\xfe", "x\u2028y", strings.Repeat("long", 5000)} {
		_, err := Parse([]string{arg}, noEnv)
		text := usageError(t, err).Error()
		assert.NotContains(t, text, "\n")
		assert.NotContains(t, text, "\x1b")
		assert.Less(t, len(text), 500)
		_, err = Parse([]string{"--provider", arg}, noEnv)
		assert.Equal(t, 2, strings.Count(usageError(t, err).Report(), "\n"))
	}
}
