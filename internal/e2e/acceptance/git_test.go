package acceptance

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// hostGit runs the host's git in a repository of another user.
func hostGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "safe.directory=*", "-c", "user.name=t", "-c", "user.email=t@example.invalid"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %v: %s", args, out)
	return string(out)
}

// newRepository makes a repository with one commit.
func newRepository(t *testing.T, dir string) {
	t.Helper()
	hostGit(t, dir, "init", "-q", "-b", "main")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "one.txt"), []byte("one\n"), 0o644))
	hostGit(t, dir, "add", "one.txt")
	hostGit(t, dir, "commit", "-qm", "one")
}

// linkedWorktree makes the workspace a worktree of a repository elsewhere, and
// returns the repository.
func (s *setting) linkedWorktree(t *testing.T) string {
	t.Helper()
	repo := t.TempDir()
	newRepository(t, repo)
	hostGit(t, repo, "worktree", "add", "-q", "-b", "w", s.workspace)
	return repo
}

// relativeWorktree is one as git 2.48 and later make it with --relative-paths.
func (s *setting) relativeWorktree(t *testing.T) string {
	t.Helper()
	repo := s.linkedWorktree(t)
	admin := filepath.Join(repo, ".git/worktrees", filepath.Base(s.workspace))
	for file, target := range map[string]string{filepath.Join(s.workspace, ".git"): admin, filepath.Join(admin, "gitdir"): filepath.Join(s.workspace, ".git")} {
		to, err := filepath.Rel(filepath.Dir(file), target)
		require.NoError(t, err)
		if file != filepath.Join(admin, "gitdir") {
			to = "gitdir: " + to
		}
		require.NoError(t, os.WriteFile(file, []byte(to+"\n"), 0o644))
	}
	return repo
}

// submodule makes the workspace a submodule of a repository, and returns that.
func (s *setting) submodule(t *testing.T) string {
	t.Helper()
	origin, super := t.TempDir(), t.TempDir()
	newRepository(t, origin)
	newRepository(t, super)
	hostGit(t, super, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", origin, "mod")
	s.workspace = filepath.Join(super, "mod")
	return super
}

// give gives directories and all in them to uid 1000.
func give(t *testing.T, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		everything(t, dir, func(path string, _ fs.FileInfo) { require.NoError(t, os.Lchown(path, 1000, 1000)) })
	}
}

func everything(t *testing.T, dir string, visit func(string, fs.FileInfo)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			visit(path, info)
		}
		return err
	}))
}

// commits is a command that uses the repository as an agent does.
const commits = `[[exec: git status --short --branch 2>&1 && echo two > two.txt && git add two.txt 2>&1 && ` +
	`git -c user.name=a -c user.email=a@example.invalid commit -qm two 2>&1 && echo "status after: <$(git status --porcelain)>"; true]]`

// Git works in a workspace, and what it writes belongs to the workspace's owner.
func TestGitWorksInTheWorkspace(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make a repository of uid 1000")
	}
	for _, tt := range []struct {
		name, branch string
		repository   func(s *setting, t *testing.T) string
	}{
		{"plain repository", "main", func(s *setting, t *testing.T) string { newRepository(t, s.workspace); return s.workspace }},
		{"linked worktree", "w", (*setting).linkedWorktree},
		{"linked worktree with relative paths", "w", (*setting).relativeWorktree},
		{"submodule", "main", (*setting).submodule},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := realCodex(t, 1000)
			repo := tt.repository(s, t)
			give(t, repo, s.workspace)
			c := s.start(t)
			c.initialize()
			text := c.turn(commits, map[string]any{"sandbox": "danger-full-access"})
			require.Contains(t, text, "## "+tt.branch)
			require.Contains(t, text, "status after: <>")
			require.NoError(t, c.in.Close())
			require.Zero(t, c.exit())
			require.Equal(t, "two\none\n", hostGit(t, s.workspace, "log", "--format=%s", tt.branch))
			objects := 0
			for _, dir := range []string{repo, s.workspace} {
				everything(t, dir, func(path string, info fs.FileInfo) {
					require.Equal(t, uint32(1000), info.Sys().(*syscall.Stat_t).Uid, path)
					if strings.Contains(path, "/objects/") && info.Mode().IsRegular() {
						objects++
					}
				})
			}
			require.GreaterOrEqual(t, objects, 6, "two commits with their trees and files")
		})
	}
}

// Control: a worktree that its repository does not know is not given the
// repository, so git's working above comes from the mount.
func TestForeignRepositoryIsNotShared(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make a repository of uid 1000")
	}
	s := realCodex(t, 1000)
	repo := s.linkedWorktree(t)
	give(t, repo, s.workspace)
	s.put(t, ".git", "gitdir: "+repo+"/.git\n", 0o644)
	c := s.start(t)
	c.initialize()
	text := c.turn(commits, map[string]any{"sandbox": "danger-full-access"})
	require.Contains(t, text, "not a git repository")
	require.NoError(t, c.in.Close())
	require.Zero(t, c.exit())
	require.Contains(t, c.stderr.String(), "git may not work in a workspace")
	require.Equal(t, "one\n", hostGit(t, repo, "log", "--format=%s", "--all"))
}

// Git refuses a repository whose owner is somebody else, as the workspace's is
// with --user, or where the front end's user has it by its group only.
func TestGitTakesAWorkspaceOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make a repository of uid 1000")
	}
	s := realCodex(t, 1000)
	newRepository(t, s.workspace)
	newRepository(t, filepath.Dir(s.put(t, "nested/.keep", "", 0o644))) // nobody named this one
	give(t, s.workspace)
	s.args = append(s.args, "--user", "4242:4242")
	c := s.start(t)
	c.initialize()
	for _, mode := range []string{"read-only", "danger-full-access"} {
		text := c.turn(`[[exec: for d in . nested; do git -C $d log --format="$d has %s" 2>&1; done]]`, map[string]any{"sandbox": mode})
		require.NotContains(t, text, "dubious ownership", mode)
		require.Contains(t, text, ". has one", mode)
		require.Contains(t, text, "nested has one", mode)
	}
	text := c.turn(`[[exec: env -u GIT_CONFIG_PARAMETERS git status 2>&1; true]]`, map[string]any{"sandbox": "danger-full-access"})
	require.Contains(t, text, "dubious ownership", "control: without our setting git refuses")
	require.NoError(t, c.in.Close())
	require.Zero(t, c.exit())
}
