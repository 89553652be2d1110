package credentials

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"mcpagents/internal/credentials"
)

// free reports whether nobody is the refresher of a login.
func free(t *testing.T, dir string) bool {
	t.Helper()
	lock := flock.New(filepath.Join(dir, credentials.RefreshLockFile))
	got, err := lock.TryLock()
	require.NoError(t, err)
	require.NoError(t, lock.Unlock())
	return got
}

func expiredHome(t *testing.T) string {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "auth.json"), expiredLogin(), 0o600))
	return dir
}

// TestCloseReleases: a sandbox that never refreshed holds the lock to its end.
func TestCloseReleases(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := expiredHome(t)
	s := launch(t, dir)
	s.do("show")
	assert.False(t, free(t, dir))
	s.close()
	assert.True(t, free(t, dir))
}

func TestAFailedLaunchReleases(t *testing.T) {
	dir := expiredHome(t)
	for name, version := range map[string]func(context.Context) (string, error){
		"before the sandbox": func(context.Context) (string, error) { return "", errors.New("no engine") },
		"in the sandbox":     func(context.Context) (string, error) { return "codex-cli 0.153.4", nil },
	} {
		t.Run(name, func(t *testing.T) {
			l, err := settings{Login: dir, Workspace: t.TempDir(), Homes: t.TempDir()}.launcher(slog.New(slog.DiscardHandler))
			require.NoError(t, err)
			inner := version
			l.CLIVersion = func(ctx context.Context) (string, error) {
				assert.False(t, free(t, dir), "control: it is held until then")
				return inner(ctx)
			}
			t.Setenv("PATH", t.TempDir()) // without any codex
			_, err = l.Launch(t.Context())
			require.Error(t, err)
			assert.True(t, free(t, dir))
		})
	}
}
