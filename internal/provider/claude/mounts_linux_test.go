package claude

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox"
)

// git runs the real git with no configuration but its own.
func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "protocol.file.allow=always", "-c", "user.name=t", "-c", "user.email=t@example.invalid"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %v: %s", args, out)
}

// A linked worktree or a submodule alone has no history: git's own directory
// comes with it, under the same path, and nothing else does.
func TestMountsOfGitDirectories(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	join := func(path string) string { return filepath.Join(base, path) }
	git(t, base, "init", "-q", "repo")
	git(t, join("repo"), "commit", "-q", "--allow-empty", "-m", "one")
	git(t, join("repo"), "worktree", "add", "-q", "-b", "w", join("wt"))
	git(t, base, "init", "-q", "super")
	git(t, join("super"), "submodule", "--quiet", "add", join("repo"), "mod")
	require.NoError(t, os.MkdirAll(join("hostile"), 0o755))
	require.NoError(t, os.WriteFile(join("hostile/.git"), []byte("gitdir: ../repo/.git\n"), 0o644))

	for _, tt := range []struct {
		name, root string
		readOnly   bool
		want       []string
		warned     bool
	}{
		{name: "plain repository", root: "repo", want: []string{"repo"}},
		{name: "linked worktree", root: "wt", want: []string{"wt", "repo/.git"}},
		{name: "submodule", root: "super/mod", want: []string{"super/mod", "super/.git/modules/mod"}},
		{name: "review of a worktree", root: "wt", readOnly: true, want: []string{"wt", "repo/.git"}},
		{name: "a foreign repository", root: "hostile", want: []string{"hostile"}, warned: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log lockedBuffer
			p := &Provider{log: slog.New(slog.NewTextHandler(&log, nil))}
			var want []sandbox.Mount
			for _, path := range tt.want {
				want = append(want, sandbox.Mount{Path: join(path), ReadOnly: tt.readOnly})
			}
			assert.Equal(t, want, p.mounts(join(tt.root), tt.readOnly))
			if tt.warned {
				assert.Contains(t, log.String(), "git may not work in a workspace")
			} else {
				assert.NotContains(t, log.String(), "level=WARN")
			}
		})
	}
}
