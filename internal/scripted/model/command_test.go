package model

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRunServesUntilItsContextEnds(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stdoutR, stdoutW := io.Pipe()
	status := make(chan int, 1)
	var stderr bytes.Buffer
	go func() {
		status <- Run(ctx, []string{"--port", "0", "--scenario", "hello", "--key", "k"}, stdoutW, &stderr)
		stdoutW.Close()
	}()
	out := bufio.NewReader(stdoutR)
	line, err := out.ReadString('\n')
	require.NoError(t, err)
	require.Regexp(t, regexp.MustCompile(`^model: listening on 127\.0\.0\.1:[0-9]+\n$`), line)

	addr := strings.TrimSpace(strings.TrimPrefix(line, "model: listening on "))
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+addr+"/v1/responses", strings.NewReader(request(classicTools, "hi")))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer k")
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Contains(t, string(body), "Hello from the scripted model.")

	stop()
	assert.Equal(t, 0, <-status)
	rest, err := io.ReadAll(out)
	require.NoError(t, err)
	assert.Empty(t, string(rest), "stdout has one line")
	assert.Empty(t, stderr.String())
}

func TestRunEndsWithoutServing(t *testing.T) {
	busy := startFixture(t, Options{})
	_, port, _ := strings.Cut(busy.Addr(), ":")
	tests := []struct {
		name           string
		args           []string
		status         int
		stdout, stderr string
	}{
		{"list", []string{"--list"}, 0, "write-file     writes hello.txt", ""},
		{"help", []string{"--help"}, 0, "", "built-in scenario, or a scenario file"},
		{"unknown flag", []string{"--host", "0.0.0.0"}, 2, "", "not defined: -host"},
		{"argument", []string{"hello"}, 2, "", `unexpected argument "hello"`},
		{"port out of range", []string{"--port", "65536"}, 2, "", "--port is 65536"},
		{"unknown scenario", []string{"--scenario", "nope"}, 2, "", `no scenario is named "nope"`},
		{"port in use", []string{"--port", port}, 1, "", "scripted model: listen tcp 127.0.0.1:" + port},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			assert.Equal(t, tt.status, Run(t.Context(), tt.args, &stdout, &stderr))
			assertContainsOrEmpty(t, stdout.String(), tt.stdout)
			assertContainsOrEmpty(t, stderr.String(), tt.stderr)
		})
	}
}

func assertContainsOrEmpty(t *testing.T, got, want string) {
	t.Helper()
	if want == "" {
		assert.Empty(t, got)
		return
	}
	assert.Contains(t, got, want)
}

// TestListGolden keeps the list of built-in scenarios in one readable place.
func TestListGolden(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Zero(t, Run(t.Context(), []string{"--list"}, &stdout, &stderr))
	golden(t, "list.txt", stdout.String())
}
