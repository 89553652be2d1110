package credentials

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// asNobody runs f with file access as another user's where the test is root, since root may
// write anywhere. Otherwise f runs as it is.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.NoError(t, unix.Setfsuid(65534))
	defer func() { require.NoError(t, unix.Setfsuid(0)) }()
	f()
}

func TestUnreadableFile(t *testing.T) {
	src, dir := newHome(t, chatgpt(1))
	path := filepath.Join(dir, "auth.json")
	require.NoError(t, os.Chmod(path, 0))
	asNobody(t, func() {
		_, err := Take(t.Context(), src)
		require.ErrorIs(t, err, os.ErrPermission)
		assert.ErrorContains(t, err, path)
	})
}

func TestUnreadableDirectory(t *testing.T) {
	src, dir := newHome(t, chatgpt(1))
	require.NoError(t, os.Chmod(dir, 0))
	asNobody(t, func() {
		_, err := Take(t.Context(), src)
		require.ErrorIs(t, err, os.ErrPermission, "not an absent login")
	})
	require.NoError(t, os.Chmod(dir, 0o700))
}

func TestUnwritableDirectory(t *testing.T) {
	src, dir := newHome(t, chatgpt(1))
	require.NoError(t, os.Chmod(filepath.Join(dir, "auth.json"), 0o644))
	require.NoError(t, os.Chmod(dir, 0o555))
	s := take(t, src)
	asNobody(t, func() {
		o, err := s.WriteBack(t.Context(), "auth.json", chatgpt(2))
		require.ErrorIs(t, err, os.ErrPermission)
		assert.Equal(t, Failed, o.Status)
		assert.Contains(t, o.Message(), "failed to persist Codex auth.json: in "+dir)
		assert.Contains(t, o.Message(), "let this user write there")
	})
	require.NoError(t, os.Chmod(dir, 0o700))
	requireCanonical(t, dir, chatgpt(1))
	assert.Equal(t, Written, writeBack(t, s, chatgpt(2)).Status, "control: the mode was the hindrance")
}

func TestNamedPipeIsNotWaitedFor(t *testing.T) {
	src, dir := newHome(t, nil)
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "auth.json"), 0o600))
	_, err := Take(t.Context(), src)
	assert.ErrorContains(t, err, "is not a regular file")
}

func TestRootKeepsTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make files of two owners")
	}
	src, dir := newHome(t, chatgpt(1))
	path := filepath.Join(dir, "auth.json")
	require.NoError(t, os.Chown(dir, 1234, 1235))
	require.NoError(t, os.Chown(path, 1234, 1236))
	assert.Equal(t, Written, writeBack(t, take(t, src), chatgpt(2)).Status)
	for name, gid := range map[string]uint32{"auth.json": 1236, LockFile: 1235} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, uint32(1234), info.Sys().(*syscall.Stat_t).Uid, name)
		assert.Equal(t, gid, info.Sys().(*syscall.Stat_t).Gid, name)
		assert.Equal(t, FileMode, info.Mode().Perm(), name)
	}
}

func TestTightUmask(t *testing.T) {
	src, dir := newHome(t, chatgpt(1))
	s := take(t, src)
	before := syscall.Umask(0o277)
	o, err := s.WriteBack(t.Context(), "auth.json", chatgpt(2))
	syscall.Umask(before)
	require.NoError(t, err)
	assert.Equal(t, Written, o.Status)
	info, err := os.Stat(filepath.Join(dir, "auth.json"))
	require.NoError(t, err)
	assert.Equal(t, FileMode, info.Mode().Perm())
}
