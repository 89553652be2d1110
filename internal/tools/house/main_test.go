package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

// TestChecks plays each archive of testdata: a project, the rules in rules.txt,
// the check in its comment, and in want what the check prints and refuses.
func TestChecks(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			require.NoError(t, err)
			dir, want := t.TempDir(), ""
			for _, f := range archive.Files {
				if f.Name == "want" {
					want = string(f.Data)
					continue
				}
				path := filepath.Join(dir, f.Name)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, f.Data, 0o600))
			}
			git := exec.Command("git", "init", "-q", dir)
			require.NoError(t, git.Run())
			var out bytes.Buffer
			check := strings.Fields(string(archive.Comment))
			run(dir, filepath.Join(dir, "rules.txt"), check, &out, &out)
			assert.Equal(t, want, strings.ReplaceAll(out.String(), dir+"/", "DIR/"))
		})
	}
}

func TestRulesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"layer":           `house.txt:1: no rule of the form "layer "`,
		"# fine\nsmall x": `house.txt:2: no rule of the form "small x"`,
		"limit rooms few": "house.txt:1: limit rooms: expected integer",
	} {
		_, err := parseRules(text)
		assert.EqualError(t, err, want)
	}
	_, err := parseRules(houseRules)
	assert.NoError(t, err, "the project's own")
}

func TestACheckThatCannotRunIsNoPass(t *testing.T) {
	var out bytes.Buffer
	assert.Equal(t, 2, run(t.TempDir(), "", nil, &out, &out), "no git repository")
	assert.Equal(t, 2, run(".", "absent.txt", nil, &out, &out))
}
