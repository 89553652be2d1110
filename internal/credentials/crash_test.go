package credentials

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain lets the test binary be the process that crashes: with these variables it writes
// one version back to a directory and ends at a step, running no deferred call. Or it is one
// front end of several.
func TestMain(m *testing.M) {
	if dir := os.Getenv("LOGIN_TEST_FRONT_END_DIR"); dir != "" {
		os.Exit(frontEnd(dir))
	}
	if dir := os.Getenv("LOGIN_TEST_CRASH_DIR"); dir != "" {
		crash(dir, os.Getenv("LOGIN_TEST_CRASH_STEP"))
	}
	os.Exit(m.Run())
}

const crashed = 42

func crash(dir, at string) {
	s, err := Take(context.Background(), Codex(dir))
	if err != nil {
		os.Exit(1)
	}
	s.step = func(step string) {
		if step == at {
			os.Exit(crashed)
		}
	}
	if _, err := s.WriteBack(context.Background(), "auth.json", chatgpt(2)); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// TestCrashAtEachStep: whatever the moment, the user has one whole login, and the next
// write-back is not hindered by what was left.
func TestCrashAtEachStep(t *testing.T) {
	for _, step := range recordSteps(t) {
		t.Run(step, func(t *testing.T) {
			src, dir := newHome(t, chatgpt(1))
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "LOGIN_TEST_CRASH_DIR="+dir, "LOGIN_TEST_CRASH_STEP="+step)
			var exit *exec.ExitError
			require.ErrorAs(t, cmd.Run(), &exit)
			require.Equal(t, crashed, exit.ExitCode())

			want := chatgpt(1)
			if step == "renamed" {
				want = chatgpt(2)
			}
			got, err := os.ReadFile(filepath.Join(dir, "auth.json"))
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
			for _, name := range temporary(t, dir) {
				info, err := os.Stat(filepath.Join(dir, name))
				require.NoError(t, err)
				assert.Zero(t, info.Mode().Perm()&0o077, "a leftover is a login")
			}
			assert.Equal(t, Written, writeBack(t, take(t, src), chatgpt(3)).Status)
		})
	}
}

// recordSteps are the steps of a write-back that goes through.
func recordSteps(t *testing.T) []string {
	src, _ := newHome(t, chatgpt(1))
	s := take(t, src)
	var steps []string
	s.step = func(step string) { steps = append(steps, step) }
	require.Equal(t, Written, writeBack(t, s, chatgpt(2)).Status)
	require.Len(t, steps, 6)
	return steps
}
