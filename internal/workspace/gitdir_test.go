//go:build unix

package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/testkit/gitrepo"
)

// repository makes base/repo with one commit.
func repository(t *testing.T) (base, repo string) {
	t.Helper()
	base = tree(t, "repo")
	repo = filepath.Join(base, "repo")
	gitrepo.Git(t, repo, "init", "-q")
	write(t, filepath.Join(repo, "a"), "a\n")
	gitrepo.Git(t, repo, "add", "a")
	gitrepo.Git(t, repo, "commit", "-qm", "one")
	return base, repo
}

func assertGitDirs(t *testing.T, root string, want ...string) {
	t.Helper()
	got, err := GitDirs(root)
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

func TestGitDirsOfRealRepositories(t *testing.T) {
	base, repo := repository(t)
	join := func(p string) string { return filepath.Join(base, p) }
	assertGitDirs(t, repo)
	assertGitDirs(t, base)

	gitrepo.Git(t, repo, "worktree", "add", "-q", "-b", "w", join("wt"))
	assertGitDirs(t, join("wt"), join("repo/.git"))
	gitrepo.Git(t, repo, "worktree", "add", "-q", "-b", "inside", join("repo/inside"))
	assertGitDirs(t, join("repo/inside"), join("repo/.git"))
	link(t, join("wt"), join("alias"))
	assertGitDirs(t, join("alias"), join("repo/.git"))

	gitrepo.Git(t, base, "clone", "-q", "--bare", repo, join("bare.git"))
	gitrepo.Git(t, join("bare.git"), "worktree", "add", "-q", "-b", "b", join("bare-wt"))
	assertGitDirs(t, join("bare-wt"), join("bare.git"))

	gitrepo.Git(t, base, "init", "-q", "super")
	gitrepo.Git(t, join("super"), "submodule", "--quiet", "add", repo, "sub dir/mod")
	assertGitDirs(t, join("super"))
	assertGitDirs(t, join("super/sub dir/mod"), join("super/.git/modules/sub dir/mod"))

	gitrepo.Git(t, join("super/sub dir/mod"), "worktree", "add", "-q", "-b", "s", join("sub-wt"))
	assertGitDirs(t, join("sub-wt"), join("super/.git/modules/sub dir/mod"))
}

// TestGitDirsWithRelativePaths writes by hand what git 2.48 and later write
// with --relative-paths.
func TestGitDirsWithRelativePaths(t *testing.T) {
	base, repo := repository(t)
	wt := filepath.Join(base, "wt")
	gitrepo.Git(t, repo, "worktree", "add", "-q", "-b", "w", wt)
	write(t, filepath.Join(wt, ".git"), "gitdir: ../repo/.git/worktrees/wt\n")
	write(t, filepath.Join(repo, ".git/worktrees/wt/gitdir"), "../../../../wt/.git\n")
	assertGitDirs(t, wt, filepath.Join(repo, ".git"))
}

func TestGitDirInsideTheRoot(t *testing.T) {
	base := tree(t, "p")
	p := filepath.Join(base, "p")
	gitrepo.Git(t, p, "init", "-q", "--bare", ".bare")
	write(t, filepath.Join(p, ".git"), "gitdir: ./.bare\n")
	assertGitDirs(t, p)
}

// TestHostileGitFiles is what a workspace could do to have a directory shared
// that is not its own: every one is an error and shares nothing.
func TestHostileGitFiles(t *testing.T) {
	setups := map[string]func(t *testing.T, base, root string){
		"any directory": func(t *testing.T, base, root string) {
			write(t, filepath.Join(base, "secret", "id"), "x")
			write(t, filepath.Join(root, ".git"), "gitdir: "+base+"/secret\n")
		},
		"a foreign repository": func(t *testing.T, base, root string) {
			write(t, filepath.Join(root, ".git"), "gitdir: ../repo/.git\n")
		},
		"a foreign worktree": func(t *testing.T, base, root string) {
			gitrepo.Git(t, filepath.Join(base, "repo"), "worktree", "add", "-q", "-b", "w", filepath.Join(base, "wt"))
			write(t, filepath.Join(root, ".git"), "gitdir: ../repo/.git/worktrees/wt\n")
		},
		"a foreign worktree, by a hard link of its .git": func(t *testing.T, base, root string) {
			gitrepo.Git(t, filepath.Join(base, "repo"), "worktree", "add", "-q", "-b", "w", filepath.Join(base, "wt"))
			require.NoError(t, os.Link(filepath.Join(base, "wt/.git"), filepath.Join(root, ".git")))
		},
		"a foreign submodule": func(t *testing.T, base, root string) {
			gitrepo.Git(t, base, "init", "-q", "super")
			gitrepo.Git(t, filepath.Join(base, "super"), "submodule", "--quiet", "add", filepath.Join(base, "repo"), "sub")
			write(t, filepath.Join(root, ".git"), "gitdir: ../super/.git/modules/sub\n")
		},
		"a made-up worktree of a real repository": func(t *testing.T, base, root string) {
			admin := filepath.Join(base, "elsewhere/worktrees/x")
			write(t, filepath.Join(admin, "commondir"), filepath.Join(base, "repo/.git")+"\n")
			write(t, filepath.Join(admin, "gitdir"), filepath.Join(root, ".git")+"\n")
			write(t, filepath.Join(root, ".git"), "gitdir: "+admin+"\n")
		},
		"a worktree of what is not git's": func(t *testing.T, base, root string) {
			admin := filepath.Join(base, "elsewhere/worktrees/x")
			write(t, filepath.Join(admin, "commondir"), "../..\n")
			write(t, filepath.Join(admin, "gitdir"), filepath.Join(root, ".git")+"\n")
			write(t, filepath.Join(root, ".git"), "gitdir: "+admin+"\n")
		},
		"a link": func(t *testing.T, base, root string) {
			link(t, filepath.Join(base, "repo/.git"), filepath.Join(root, ".git"))
		},
		"a pipe": func(t *testing.T, _, root string) {
			require.NoError(t, syscall.Mkfifo(filepath.Join(root, ".git"), 0o644))
		},
		"a huge file": func(t *testing.T, _, root string) {
			write(t, filepath.Join(root, ".git"), "gitdir: "+strings.Repeat("a/", maxPointer))
		},
		"an empty file": func(t *testing.T, _, root string) { write(t, filepath.Join(root, ".git"), "\n") },
		"two lines": func(t *testing.T, base, root string) {
			write(t, filepath.Join(root, ".git"), "gitdir: "+base+"/repo/.git\nx\n")
		},
		"a NUL":      func(t *testing.T, _, root string) { write(t, filepath.Join(root, ".git"), "gitdir: a\x00b") },
		"an escape":  func(t *testing.T, _, root string) { write(t, filepath.Join(root, ".git"), "gitdir: \x1b[2J") },
		"no keyword": func(t *testing.T, _, root string) { write(t, filepath.Join(root, ".git"), "../repo/.git\n") },
		"nowhere":    func(t *testing.T, _, root string) { write(t, filepath.Join(root, ".git"), "gitdir: ../none\n") },
		"a pipe for a commondir": func(t *testing.T, base, root string) {
			require.NoError(t, os.MkdirAll(filepath.Join(base, "evil"), 0o755))
			require.NoError(t, syscall.Mkfifo(filepath.Join(base, "evil/commondir"), 0o644))
			write(t, filepath.Join(root, ".git"), "gitdir: ../evil\n")
		},
	}
	for name, setup := range setups {
		t.Run(name, func(t *testing.T) {
			base, _ := repository(t)
			root := filepath.Join(base, "root")
			require.NoError(t, os.Mkdir(root, 0o755))
			setup(t, base, root)
			dirs, err := GitDirs(root)
			assert.Empty(t, dirs)
			require.Error(t, err)
			assert.Contains(t, err.Error(), "--workspace")
			assert.NotContains(t, err.Error(), "\n")
			assert.NotContains(t, err.Error(), "\x1b")
		})
	}
}

// TestForgedAdminInsideTheRoot: everything in the root is the workspace's own
// word, and so leads nowhere.
func TestForgedAdminInsideTheRoot(t *testing.T) {
	base, repo := repository(t)
	root := filepath.Join(base, "root")
	admin := filepath.Join(root, "fake/worktrees/x")
	write(t, filepath.Join(admin, "commondir"), filepath.Join(repo, ".git")+"\n")
	write(t, filepath.Join(admin, "gitdir"), filepath.Join(root, ".git")+"\n")
	write(t, filepath.Join(root, ".git"), "gitdir: fake/worktrees/x\n")
	assertGitDirs(t, root)
}

func TestGitDirsOfAMissingRoot(t *testing.T) {
	_, err := GitDirs(filepath.Join(tree(t), "missing"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestCoreWorktree(t *testing.T) {
	assert.Equal(t, "../x y", coreWorktree("[core]\n\tbare = false\n\tworktree = ../x y\n[remote \"o\"]\n\turl = z\n"))
	assert.Equal(t, "/b", coreWorktree("[CORE]\nworktree=/a\nWorkTree = \"/b\"\n"))
	assert.Empty(t, coreWorktree("[other]\nworktree = /a\n[core]\nbare\n"))
}

// FuzzGitFile: whatever the root's .git says, nothing outside is shared, and
// an error is one printable line.
func FuzzGitFile(f *testing.F) {
	f.Add("gitdir: ../repo/.git\n")
	f.Add("gitdir: ../secret")
	f.Add("gitdir: /etc")
	f.Add("gitdir:\t../repo/.git/../..\r\n")
	f.Add("")
	f.Add("gitdir: \xff\n\x1b")
	base := f.TempDir()
	for _, dir := range []string{"root", "secret", "repo/.git/objects", "repo/.git/refs", "repo/.git/worktrees/x"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			f.Fatal(err)
		}
	}
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/main\n", "config": "[core]\nworktree = ../../other\n",
		"worktrees/x/commondir": "../..\n", "worktrees/x/gitdir": "/elsewhere/.git\n"} {
		if err := os.WriteFile(filepath.Join(base, "repo/.git", name), []byte(text), 0o644); err != nil {
			f.Fatal(err)
		}
	}
	root := filepath.Join(base, "root")
	f.Fuzz(func(t *testing.T, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(root, ".git"), []byte(text), 0o644))
		dirs, err := GitDirs(root)
		assert.Empty(t, dirs)
		if err != nil {
			assert.NotContains(t, err.Error(), "\n")
			assert.NotContains(t, err.Error(), "\x1b")
		}
	})
}
