//go:build unix

package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRefusedWithoutBeingNamed(t *testing.T) {
	base := tree(t, "homes/u/project", "homes/u/.codex/worktrees/w", "homes/u2", "run/engine", "login dir", "free")
	home := filepath.Join(base, "homes/u")
	link(t, home, filepath.Join(base, "home-link"))
	link(t, filepath.Join(base, "run"), filepath.Join(base, "var-run"))
	private := []string{
		filepath.Join(home, ".codex", "auth.json"), // does not exist
		filepath.Join(base, "var-run", "engine", "docker.sock"),
		filepath.Join(base, "login dir", "auth.json"),
		"", "relative",
	}
	for dir, reason := range map[string]string{
		"/":                               "is the root of the file system",
		"/etc":                            "belongs to the system (/etc)",
		"/usr":                            "belongs to the system (/usr)",
		"/var":                            "belongs to the system (/var)",
		"/dev":                            "belongs to the system (/dev)",
		home:                              "is your home directory",
		home + "/project/..":              "is your home directory",
		filepath.Join(base, "home-link"):  "is your home directory",
		filepath.Join(base, "homes"):      "holds your home directory",
		base:                              "holds your home directory",
		filepath.Join(home, ".codex"):     "holds a login or the engine's socket (" + private[0] + ")",
		filepath.Join(base, "run/engine"): "holds a login or the engine's socket (" + private[1] + ")",
		filepath.Join(base, "run"):        "holds a login or the engine's socket (" + private[1] + ")",
		filepath.Join(base, "login dir"):  "holds a login or the engine's socket (" + private[2] + ")",
	} {
		r, err := Resolve(nil, dir, home, private)
		var refused *RefusedError
		require.ErrorAs(t, err, &refused, dir)
		assert.Equal(t, reason, refused.Reason, dir)
		assert.Contains(t, err.Error(), refused.Flag)
		assert.Empty(t, r.Dirs())

		real, err := filepath.EvalSymlinks(dir)
		require.NoError(t, err)
		assert.Equal(t, real, refused.Dir)
		named, err := Resolve([]string{dir}, dir, home, private)
		require.NoError(t, err, "named, it is taken at its word")
		assert.Equal(t, []string{real}, named.Dirs())
	}
	for _, dir := range []string{"homes/u/project", "homes/u2", "homes/u/.codex/worktrees/w", "free"} {
		_, err := Resolve(nil, filepath.Join(base, dir), home, private)
		assert.NoError(t, err, "negative control: %s", dir)
	}
}

func TestRefusedBelowSystemDirectories(t *testing.T) {
	for dir, below := range map[string]bool{"/proc/self/fd": true, "/sys/kernel": true, "/usr/bin": false, "/var/tmp": false} {
		if _, err := os.Stat(dir); err != nil {
			continue // not every unix has all of them
		}
		real, err := filepath.EvalSymlinks(dir)
		require.NoError(t, err)
		assert.Equal(t, below, whyRefused(real, "", nil) != "", dir)
	}
	assert.NotEmpty(t, whyRefused("/etc/ssh", "", nil), "whether it exists or not")
	assert.Empty(t, whyRefused("/etcetera", "", nil))
	assert.Empty(t, whyRefused("/srv", "/", nil), "a home of / is no reason")
}

func TestRefusedFlagIsQuoted(t *testing.T) {
	base := tree(t, "it's here")
	dir := filepath.Join(base, "it's here")
	_, err := Resolve(nil, dir, dir, nil)
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, "--workspace '"+base+`/it'\''s here'`, refused.Flag)
}

func TestHoldsSeesIdentity(t *testing.T) {
	base := tree(t, "a/b")
	link(t, filepath.Join(base, "a"), filepath.Join(base, "l"))
	assert.True(t, holds(filepath.Join(base, "a"), filepath.Join(base, "l/b")))
	assert.True(t, holds(filepath.Join(base, "l"), filepath.Join(base, "a/b/not/yet")))
	assert.True(t, holds(filepath.Join(base, "a"), filepath.Join(base, "l/not/yet")))
	assert.False(t, holds(filepath.Join(base, "a/b"), filepath.Join(base, "a")))
	assert.False(t, holds(filepath.Join(base, "missing"), base))
}

func TestOwner(t *testing.T) {
	dir := tree(t)
	require.NoError(t, os.Chmod(dir, 0o755))
	uid, gid, groupWritable, err := Owner(dir)
	require.NoError(t, err)
	assert.Equal(t, os.Getuid(), uid)
	assert.GreaterOrEqual(t, gid, 0)
	assert.False(t, groupWritable)
	require.NoError(t, os.Chmod(dir, 0o775))
	_, _, groupWritable, err = Owner(dir)
	require.NoError(t, err)
	assert.True(t, groupWritable)
	if os.Getuid() == 0 {
		require.NoError(t, os.Chown(dir, 1234, 5678))
		uid, gid, _, err = Owner(dir)
		require.NoError(t, err)
		assert.Equal(t, []int{1234, 5678}, []int{uid, gid})
	}
	_, _, _, err = Owner(filepath.Join(dir, "missing"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}
