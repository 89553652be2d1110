// Package gitrepo makes repositories with the real git, for tests of what
// a workspace in one needs.
package gitrepo

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Git runs git with no configuration but its own.
func Git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "protocol.file.allow=always", "-c", "user.name=t",
		"-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %v: %s", args, out)
}

// Repositories makes repo, its linked worktree wt, super with repo as its
// submodule mod, and hostile, which claims to be of repo. It returns their paths.
func Repositories(t *testing.T) (path func(name string) string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	path = func(name string) string { return filepath.Join(base, name) }
	Git(t, base, "init", "-q", "repo")
	Git(t, path("repo"), "commit", "-q", "--allow-empty", "-m", "one")
	Git(t, path("repo"), "worktree", "add", "-q", "-b", "w", path("wt"))
	Git(t, base, "init", "-q", "super")
	Git(t, path("super"), "submodule", "--quiet", "add", path("repo"), "mod")
	require.NoError(t, os.MkdirAll(path("hostile"), 0o755))
	require.NoError(t, os.WriteFile(path("hostile/.git"), []byte("gitdir: ../repo/.git\n"), 0o644))
	return path
}
