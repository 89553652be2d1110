//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func example(t *testing.T, name string) string {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "examples", name))
	require.NoError(t, err)
	return string(b)
}

func TestExamplesParse(t *testing.T) {
	p, err := parseGitHub([]byte(example(t, github)))
	require.NoError(t, err)
	assert.Contains(t, p.review.script, program)
	assert.Equal(t, "${{ secrets.OPENAI_API_KEY }}", p.review.env["OPENAI_API_KEY"])
	assert.Len(t, p.before, 1)
	assert.Equal(t, "${{ runner.temp }}/review/diff.patch", p.artifacts[0])
	_, err = within(p.review.script, "4")
	require.NoError(t, err)

	p, err = parseGitLab([]byte(example(t, gitlab)))
	require.NoError(t, err)
	assert.Contains(t, p.review.script, program)
	assert.True(t, p.before[0].mayFail)
	assert.Equal(t, []string{"review/diff.patch", "review/result.json", "review/call.log"}, p.artifacts)
}

// What the harness would play wrongly is refused.
func TestDriftIsRefused(t *testing.T) {
	good := example(t, github)
	for name, change := range map[string]*strings.Replacer{
		"another action":    strings.NewReplacer("actions/checkout@v4", "someone/else@v1"),
		"no always()":       strings.NewReplacer("if: always()", "if: success()"),
		"no call":           strings.NewReplacer("mcp-agents call", "true"),
		"not YAML":          strings.NewReplacer("jobs:", "jobs: ["),
		"nothing to upload": strings.NewReplacer("actions/upload-artifact@v4", "actions/checkout@v4"),
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
