//go:build unix

package setup

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestModeOwnerAndLinkStay(t *testing.T) {
	m := newMachine(t)
	req := m.request("codex")
	real := filepath.Join(m.dir, "dotfiles.toml")
	require.NoError(t, os.WriteFile(real, []byte("a = 1\n"), 0o640))
	require.NoError(t, os.Chmod(real, 0o640))
	owner := os.Getuid()
	if owner == 0 {
		owner = 1234
		require.NoError(t, os.Chown(real, owner, owner))
	}
	require.NoError(t, os.Mkdir(filepath.Join(m.home, ".codex"), 0o700))
	link := filepath.Join(m.home, ".codex", "config.toml")
	require.NoError(t, os.Symlink(real, link))
	for _, remove := range []bool{false, true} {
		req.Remove = remove
		out, err := Run(req)
		require.NoError(t, err)
		assert.Equal(t, real, out.Path)
		info, err := os.Lstat(link)
		require.NoError(t, err)
		assert.NotZero(t, info.Mode()&fs.ModeSymlink)
		info, err = os.Stat(real)
		require.NoError(t, err)
		assert.Equal(t, fs.FileMode(0o640), info.Mode())
		assert.Equal(t, owner, int(info.Sys().(*syscall.Stat_t).Uid))
	}
}

func TestModesOfNewFiles(t *testing.T) {
	old := syscall.Umask(0o077)
	t.Cleanup(func() { syscall.Umask(old) })
	m := newMachine(t)
	for client, mode := range map[string]fs.FileMode{"claude-code": 0o644, "cursor": 0o644, "codex": 0o600} {
		out, err := Run(m.request(client))
		require.NoError(t, err)
		info, err := os.Stat(out.Path)
		require.NoError(t, err)
		assert.Equal(t, mode, info.Mode(), client)
	}
	req := m.request("claude-code")
	req.User = true
	out, err := Run(req)
	require.NoError(t, err)
	info, err := os.Stat(out.Path)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode())
}

func TestLinkToNothingAndPipesAreRefused(t *testing.T) {
	m := newMachine(t)
	path := filepath.Join(m.dir, ".mcp.json")
	require.NoError(t, os.Symlink("nowhere", path))
	_, err := Run(m.request("claude-code"))
	require.ErrorContains(t, err, "symbolic link to nothing")
	require.NoError(t, os.Remove(path))
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	_, err = Run(m.request("claude-code"))
	require.ErrorContains(t, err, "no regular file")
}

// A client that writes its file in between loses nothing.
func TestChangedInBetween(t *testing.T) {
	m := newMachine(t)
	req := m.request("claude-code")
	path := m.put(req, []byte("{}\n"))
	f, err := open(target{path: path, mode: 0o644})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte("{ }\n"), 0o644))
	require.ErrorContains(t, f.replace([]byte("x")), "was changed in between")
	require.ErrorContains(t, f.remove(), "was changed in between")
	assert.Equal(t, "{ }\n", string(contents(t, path)))
	left, err := os.ReadDir(m.dir)
	require.NoError(t, err)
	assert.Len(t, left, 1, "no temporary file")
}
