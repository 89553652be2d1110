package guest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"mcpagents/internal/sandbox/wire"
)

func TestFilesIn(t *testing.T) {
	home := t.TempDir()
	f := &files{home: home, dir: ".codex"}
	old := unix.Umask(0)
	err := f.put(wire.File{Name: "auth.json", Data: []byte("{}")})
	unix.Umask(old)
	require.NoError(t, err)
	for path, mode := range map[string]os.FileMode{".codex": 0o700 | os.ModeDir, ".codex/auth.json": 0o600} {
		st, err := os.Lstat(filepath.Join(home, path))
		require.NoError(t, err)
		require.Equal(t, mode, st.Mode(), path)
	}
	require.ErrorIs(t, f.put(wire.File{Name: "auth.json"}), unix.EEXIST, "exclusively")
}

// Through no symlink, neither in the file's place nor in its directory's.
func TestFilesThroughNoSymlink(t *testing.T) {
	elsewhere := t.TempDir()
	secret := filepath.Join(elsewhere, "auth.json")
	require.NoError(t, os.WriteFile(secret, []byte("of the host"), 0o600))

	home := t.TempDir()
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(home, ".codex")))
	f := &files{home: home, dir: ".codex"}
	require.Error(t, f.put(wire.File{Name: "config.toml", Data: []byte("x")}))
	require.NoFileExists(t, filepath.Join(elsewhere, "config.toml"))
	require.Equal(t, wire.FileRefused, f.collect("auth.json").State)

	f = &files{home: t.TempDir()}
	link := filepath.Join(f.home, "auth.json")
	require.NoError(t, os.Symlink(secret, link))
	require.Error(t, f.put(wire.File{Name: "auth.json", Data: []byte("x")}))
	got := f.collect("auth.json")
	require.Equal(t, wire.Collected{Name: "auth.json", State: wire.FileRefused, Asked: true}, got)

	require.NoError(t, os.Remove(link))
	require.NoError(t, os.WriteFile(link, []byte("own"), 0o600))
	require.Equal(t, "own", string(f.collect("auth.json").Data), "the control: a real file is read")
}

func TestFilesOut(t *testing.T) {
	home := t.TempDir()
	f := &files{home: home, dir: ".codex"}
	require.Equal(t, wire.FileMissing, f.collect("auth.json").State, "no directory")
	dir := filepath.Join(home, ".codex")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.Equal(t, wire.FileMissing, f.collect("auth.json").State, "no file")
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "auth.json"), 0o600))
	require.Equal(t, wire.FileRefused, f.collect("auth.json").State, "a pipe, and nobody hangs on it")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "config.toml"), 0o700))
	require.Equal(t, wire.FileRefused, f.collect("config.toml").State, "a directory")
	large := filepath.Join(dir, "models_cache.json")
	require.NoError(t, os.WriteFile(large, make([]byte, wire.MaxFile), 0o600))
	require.Len(t, f.collect("models_cache.json").Data, wire.MaxFile)
	require.NoError(t, os.Truncate(large, wire.MaxFile+1))
	require.Equal(t, wire.FileRefused, f.collect("models_cache.json").State)
	require.NoError(t, os.Truncate(large, 1<<40))
	require.Equal(t, wire.FileRefused, f.collect("models_cache.json").State, "sparse and huge")
}

// A file that is written in two halves is reported twice, so that its last
// report is the whole; one that did not change, never.
func TestChangedFiles(t *testing.T) {
	f := &files{home: t.TempDir()}
	names := []string{"auth.json", "config.toml"}
	path := filepath.Join(f.home, "auth.json")
	require.NoError(t, os.WriteFile(path, []byte("before"), 0o600))
	f.mark(names)
	require.Empty(t, f.changed(names))

	out, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	require.NoError(t, err)
	_, err = out.WriteString("ha")
	require.NoError(t, err)
	require.Equal(t, "ha", string(f.changed(names)[0].Data))
	_, err = out.WriteString("lf")
	require.NoError(t, err)
	require.NoError(t, out.Close())
	got := f.changed(names)
	require.Equal(t, []wire.Collected{{Name: "auth.json", State: wire.FilePresent, Data: []byte("half")}}, got)
	require.Empty(t, f.changed(names))

	other := filepath.Join(f.home, "new")
	require.NoError(t, os.WriteFile(other, []byte("half"), 0o600))
	require.NoError(t, os.Rename(other, path))
	require.Len(t, f.changed(names), 1, "replaced by a file of the same size")
	require.NoError(t, os.Remove(path))
	require.Empty(t, f.changed(names), "nothing to write back")
	require.NoError(t, os.WriteFile(path, []byte("again"), 0o600))
	require.Len(t, f.changed(names), 1)
}
