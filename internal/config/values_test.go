package config

import (
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func parseOne(t *testing.T, flag, value string) (Options, error) {
	t.Helper()
	return Parse([]string{"--provider", "browser", "--" + flag + "=" + value}, noEnv)
}

func TestValues(t *testing.T) {
	good := func(flag, value string, want any, field func(Options) any) {
		t.Helper()
		o, err := parseOne(t, flag, value)
		if assert.NoError(t, err, "--%s=%s", flag, value) {
			assert.Equal(t, want, field(o), "--%s=%s", flag, value)
		}
	}
	good("timeout", "0.0001", time.Millisecond, func(o Options) any { return o.Codex.Timeout })
	good("timeout", "1.2345", 1235*time.Millisecond, func(o Options) any { return o.Codex.Timeout })
	good("timeout", strings.Repeat("9", 40), maxSeconds*time.Second, func(o Options) any { return o.Codex.Timeout })
	good("codex_idle_timeout", "0", time.Duration(0), func(o Options) any { return o.Codex.IdleTimeout })
	good("codex_idle_timeout", ".5", 500*time.Millisecond, func(o Options) any { return o.Codex.IdleTimeout })
	good("codex_status_interval", "9999999999", MaxTimer, func(o Options) any { return o.Codex.StatusInterval })
	good("memory", "512m", int64(512<<20), func(o Options) any { return o.Sandbox.MemoryBytes })
	good("memory", "1.5g", int64(3<<29), func(o Options) any { return o.Sandbox.MemoryBytes })
	good("cpus", "1.5", int64(1.5e9), func(o Options) any { return o.Sandbox.NanoCPUs })
	good("user", "1000:100", &User{UID: 1000, GID: 100}, func(o Options) any { return o.Sandbox.User })
	good("user", "0:0", &User{}, func(o Options) any { return o.Sandbox.User })
	good("network", "container:ab12", "container:ab12", func(o Options) any { return o.Sandbox.Network })
	good("network", "my_net.1", "my_net.1", func(o Options) any { return o.Sandbox.Network })
	good("max_message_bytes", "2097152", int64(2<<20), func(o Options) any { return o.Server.MaxMessageBytes })
	good("log_level", "warn", slog.LevelWarn, func(o Options) any { return o.Server.LogLevel })
	good("log_format", "json", LogJSON, func(o Options) any { return o.Server.LogFormat })
	good("workspace_access", "ro", AccessReadOnly, func(o Options) any { return o.Sandbox.Access })
	good("workspace", "~/x/../y", []string{"~/x/../y"}, func(o Options) any { return o.Sandbox.Workspaces })
	good("warm", "3", int64(3), func(o Options) any { return o.Sandbox.Warm })
	good("trust_workspace", "true", true, func(o Options) any { return o.Claude.TrustWorkspace })
	good("trust_workspace", "false", false, func(o Options) any { return o.Claude.TrustWorkspace })
	good("image", "ghcr.io:5000/a/b@sha256:ab", "ghcr.io:5000/a/b@sha256:ab", func(o Options) any { return o.Sandbox.Image })
	good("docker_host", "unix:///run/user/1000/docker.sock", "unix:///run/user/1000/docker.sock",
		func(o Options) any { return o.Sandbox.DockerHost })
	good("model_base_url", "http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1", func(o Options) any { return o.Sandbox.ModelBaseURL })
	good("browser_app_port", "65535", 65535, func(o Options) any { return o.Browser.AppPort })
	good("browser_viewport", "1x1", "1x1", func(o Options) any { return o.Browser.Viewport })
	good("browser_lease_command", `lease --name "a b"`, []string{"lease", "--name", "a b"},
		func(o Options) any { return o.Browser.LeaseCommand })
}

func TestRefusedValues(t *testing.T) {
	notPlain := []string{"", " 5 ", "1e3", "0x10", "Infinity", "NaN", "+5", "5.", "-1", "1_000", "٣", strings.Repeat("9", 400)}
	for flag, tc := range map[string]struct {
		values  []string
		problem string
	}{
		"timeout":                     {append(notPlain, "0", "0.0"), "--timeout must be a positive number"},
		"codex_idle_timeout":          {notPlain, "--codex_idle_timeout must be a non-negative number"},
		"codex_cancel_grace":          {notPlain, "--codex_cancel_grace must be a non-negative number"},
		"codex_status_interval":       {notPlain, "--codex_status_interval must be a non-negative number"},
		"browser_idle_timeout":        {notPlain, "--browser_idle_timeout must be a non-negative number"},
		"stop_grace":                  {notPlain, "--stop_grace must be a non-negative number"},
		"stdio_idle_timeout":          {notPlain, "--stdio_idle_timeout must be a non-negative number"},
		"parent_watchdog":             {notPlain, "--parent_watchdog must be a non-negative number"},
		"lifeline_timeout":            {append(notPlain, "0"), "--lifeline_timeout must be a positive number"},
		"handshake_timeout":           {append(notPlain, "0"), "--handshake_timeout must be a positive number"},
		"browser_app_port":            {append(notPlain, "0", "65536", "80.5"), "--browser_app_port must be an integer from 1 to 65535"},
		"pids-limit":                  {append(notPlain, "0", "31", "4194305"), "--pids-limit must be an integer from 32 to 4194304"},
		"warm":                        {append(notPlain, "65"), "--warm must be an integer from 0 to 64"},
		"browser_viewport":            {[]string{"", "0x1", "01x1", "1X1", "1x1 ", "1x1\n", "-1x1", "1x"}, "MCP_AGENTS_BROWSER_VIEWPORT must use positive WxH dimensions"},
		"browser_network":             {[]string{"", "host", "container:x", "None"}, "--browser_network must be bridge or none"},
		"browser_log_file":            {[]string{"", " "}, "--browser_log_file must not be blank"},
		"browser_allowed_url_pattern": {[]string{"", " "}, "--browser_allowed_url_pattern must not be blank"},
		"browser_lease_command":       {[]string{"", " "}, "browser lease command must be a nonblank command or JSON argv"},
		"browser_command":             {[]string{"a 'b"}, "browser command has an unterminated quote or escape"},
		"memory": {[]string{"", "0", "-4g", "5m", "4q", "lots", "99999999999g", "1e400g", "NaN", "2p"},
			"--memory must be a size from 6MiB to 1PiB, for example 512m or 4g"},
		"max_message_bytes": {[]string{"", "1023", "2g", "-1"}, "--max_message_bytes must be a size from 1KiB to 1GiB, for example 512m or 4g"},
		"cpus":              {append(notPlain, "0", "0.009", "1048577"), "--cpus must be a number of CPUs of at least 0.01, for example 2 or 1.5"},
		"user": {[]string{"", "1000", "1000:", ":1000", "a:b", "-1:0", "0:-1", "4294967295:0", "0:4294967296", "1:2:3", " 1:2", "+1:2"},
			"--user must be UID:GID in numbers, for example 1000:1000"},
		"network": {[]string{"", "container:", "container:a b", "-x", "a/b", "container:a:b", "ns:/proc/1/ns/net", "container:container:a"},
			"--network must be bridge, none, host, container:ID or the name of a network"},
		"runtime":          {[]string{"", "Docker", "podman"}, "--runtime must be docker or local"},
		"workspace_access": {[]string{"", "RO", "w"}, "--workspace_access must be rw or ro"},
		"log_level":        {[]string{"", "trace"}, "--log_level must be debug, info, warn or error"},
		"log_format":       {[]string{"", "yaml"}, "--log_format must be text or json"},
		"env":              {[]string{"", "A=b", "1A", "A B", "A-B"}, "--env must be the name of an environment variable, without a value"},
		"model_base_url":   {[]string{"", "localhost:80", "ftp://x", "http://", "http://:80", "http://a b"}, "--model_base_url must be an http or https URL"},
		"docker_host":      {[]string{"", "/var/run/docker.sock", "unix://", "unix:// x"}, "--docker_host must be an engine address, for example unix:///var/run/docker.sock"},
		"self-container":   {[]string{"", "a b", "-x", "a/b"}, "--self-container must be a name of letters, digits, dot, hyphen and underscore"},
		"oci_runtime":      {[]string{"", "../x"}, "--oci_runtime must be a name of letters, digits, dot, hyphen and underscore"},
		"image":            {[]string{"", "-x", "a b", "a\n"}, "--image must be an image reference"},
		"workspace":        {[]string{"", " "}, "--workspace must not be blank"},
		"ca_file":          {[]string{""}, "--ca_file must not be blank"},
		"auth_source":      {[]string{""}, "--auth_source must not be blank"},
	} {
		for _, value := range tc.values {
			_, err := parseOne(t, flag, value)
			assert.EqualError(t, err, tc.problem, "--%s=%q", flag, value)
		}
	}
}

func TestLongTimesAddUpWithoutOverflow(t *testing.T) {
	o, err := Parse([]string{"--timeout=1" + strings.Repeat("0", 300), "--codex_cancel_grace=" + strings.Repeat("9", 20)}, noEnv)
	require.NoError(t, err)
	assert.Positive(t, o.Codex.Timeout)
	assert.Equal(t, 2*o.Codex.CancelGrace, o.Codex.ClientGoneGrace)
	assert.Less(t, o.Codex.ClientGoneGrace, time.Duration(math.MaxInt64))
	assert.True(t, time.Now().Add(o.Codex.ClientGoneGrace).After(time.Now()))
}
