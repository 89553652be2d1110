package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/tools/bench/measure"
)

func TestCommands(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want [][]string
	}{
		{nil, nil},
		{[]string{"--"}, nil},
		{[]string{"a", "b"}, [][]string{{"a", "b"}}},
		{[]string{"--", "a", "-x", "--", "b", "--y", "--"}, [][]string{{"a", "-x"}, {"b", "--y"}}},
	} {
		var got [][]string
		for _, s := range commands(tt.args) {
			got = append(got, s.argv)
		}
		assert.Equal(t, tt.want, got, "%q", tt.args)
	}
}

func TestConfigured(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".mcp.json")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	getenv := func(name string) string { return map[string]string{"PWD": "/p", "HOME": "/h"}[name] }
	write(`{"mcpServers":{"b":{"type":"stdio","command":"${HOME}/bin/b","args":["-v","${PWD}:$PWD"],"env":{"Z":"$HOME","A":"1"}},"a":{"command":"a"}}}`)
	got, err := configured(path, getenv)
	require.NoError(t, err)
	assert.Equal(t, []*server{{name: path + ": a", argv: []string{"a"}},
		{name: path + ": b", argv: []string{"/h/bin/b", "-v", "/p:/p"}, env: []string{"A=1", "Z=/h"}}}, got)
	for text, want := range map[string]string{`{"mcpServers":{"web":{"url":"https://x"}}}`: "server web has no command", `{`: "unexpected end"} {
		write(text)
		_, err := configured(path, getenv)
		require.ErrorContains(t, err, want)
	}
	_, err = configured(path+"x", getenv)
	require.ErrorContains(t, err, "read the configuration")
}

func TestReport(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, report(&out, []*server{{name: "a b", all: []measure.Startup{{Initialize: 8 * time.Millisecond, ToolList: 9 * time.Millisecond,
		CPU: 12 * time.Millisecond, Memory: 3 << 19, Tools: 6}}}}))
	assert.Equal(t, "initialize  tools/list  CPU      memory   tools  server\n8 ms        9 ms        0.012 s  1.5 MiB  6      a b\n", out.String())
}

func TestNothingToMeasure(t *testing.T) {
	for _, args := range [][]string{nil, {"--"}, {"-rounds", "0", "--", "x"}, {"-rounds", "1", "--", "/nonexistent/server"}} {
		require.Error(t, run(context.Background(), args, new(bytes.Buffer)))
	}
}
