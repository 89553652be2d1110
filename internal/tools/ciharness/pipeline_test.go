//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func example(t *testing.T, name string) string {
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "examples", name))
	require.NoError(t, err)
	return string(b)
}

func TestExamplesParse(t *testing.T) {
	p, err := parseGitHub([]byte(example(t, github)))
	require.NoError(t, err)
	assert.Contains(t, p.review.script, program)
	assert.Equal(t, "${{ secrets.OPENAI_API_KEY }}", p.review.env["OPENAI_API_KEY"])
	assert.Len(t, p.before, 1)
	assert.Len(t, p.after, 1)
	assert.Equal(t, "${{ runner.temp }}/review/diff.patch", p.artifacts[0])
	_, err = within(p.review.script, "4")
	require.NoError(t, err)

	p, err = parseGitLab([]byte(example(t, gitlab)))
	require.NoError(t, err)
	assert.Contains(t, p.review.script, program)
	assert.True(t, p.before[0].mayFail)
	assert.Equal(t, []string{"review/diff.patch", "review/result.json", "review/call.log"}, p.artifacts)
}

// A cancel that reaches the shell alone ends a step whose command is that process,
// and leaves the command running where it is a child. One to the group ends both.
func TestCancel(t *testing.T) {
	const child = `bash -c 'echo begun; exec sleep 60'`
	alone := cancel{signals: []signalling{{syscall.SIGINT, 100 * time.Millisecond}, {syscall.SIGTERM, 100 * time.Millisecond}}}
	group := cancel{group: true, signals: []signalling{{syscall.SIGTERM, time.Minute}}}
	patient := cancel{signals: []signalling{{syscall.SIGINT, time.Minute}}}
	for name, c := range map[string]struct {
		script string
		cancel cancel
		ended  bool
	}{
		"exec":               {"exec " + child, patient, true},
		"a child":            {child + "\n:", alone, false},
		"a child, the group": {child + "\n:", group, true},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "step.sh")
			require.NoError(t, os.WriteFile(file, []byte(c.script), 0o600))
			cmd := exec.Command("bash", file)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			out := &watched{text: "begun", found: make(chan struct{})}
			cmd.Stdout = out
			require.NoError(t, cmd.Start())
			ended := make(chan struct{})
			go func() { defer close(ended); _ = cmd.Wait() }()
			<-out.found
			assert.Equal(t, c.ended, c.cancel.end(cmd.Process.Pid, ended))
			<-ended
		})
	}
}

// What the harness would play wrongly is refused.
func TestDriftIsRefused(t *testing.T) {
	good := example(t, github)
	for name, change := range map[string]*strings.Replacer{
		"another action":         strings.NewReplacer("actions/checkout@v4", "someone/else@v1"),
		"no always()":            strings.NewReplacer("if: always()", "if: success()"),
		"no call":                strings.NewReplacer("mcp-agents call", "true"),
		"a call below the shell": strings.NewReplacer("exec mcp-agents", "mcp-agents"),
		"a condition":            strings.NewReplacer("name: Show\n        if: always()", "name: Show\n        if: failure()"),
		"a step behind":          strings.NewReplacer("name: Show\n        if: always()", "name: Show"),
		"not YAML":               strings.NewReplacer("jobs:", "jobs: ["),
		"nothing to upload":      strings.NewReplacer("actions/upload-artifact@v4", "actions/checkout@v4"),
	} {
		_, err := parseGitHub([]byte(change.Replace(good)))
		assert.Error(t, err, name)
	}
	_, err := parseGitLab([]byte(strings.Replace(example(t, gitlab), "when: on_failure\n  needs", "needs", 1)))
	assert.Error(t, err)
	_, err = expand("${{ secrets.OTHER }}", map[string]string{})
	assert.ErrorContains(t, err, "secrets.OTHER")
	_, err = within("mcp-agents call", "4")
	assert.Error(t, err)
}
