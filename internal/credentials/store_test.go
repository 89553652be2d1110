package credentials

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	src := Codex(dir)
	file := filepath.Join(dir, "auth.json")
	for _, data := range []string{`{"OPENAI_API_KEY":"one"}`, `{"tokens":{"access_token":"two","account_id":"another"}}`} {
		require.NoError(t, Store(t.Context(), src, []byte(data)))
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, data, string(got))
		if runtime.GOOS != "windows" {
			info, err := os.Stat(file)
			require.NoError(t, err)
			assert.Equal(t, FileMode, info.Mode().Perm())
			info, err = os.Stat(dir)
			require.NoError(t, err)
			assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
		}
	}
	// What is no login changes nothing, and is not quoted.
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, data := range []string{``, `{}`, `{"OPENAI_API_KEY":""}`, `[1]`, `{"OPENAI_API_KEY":"secret"`, `{"other":"secret"}`} {
		err := Store(t.Context(), src, []byte(data))
		require.Error(t, err, data)
		assert.NotContains(t, err.Error(), "secret")
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, before, got)
	names, err := filepath.Glob(filepath.Join(dir, ".auth.json*"))
	require.NoError(t, err)
	assert.Empty(t, names, "no copy is left")
}

func TestStoreFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(t.TempDir(), "elsewhere")
	require.NoError(t, os.WriteFile(target, []byte("kept"), 0o600))
	if err := os.Symlink(target, filepath.Join(dir, "auth.json")); err != nil {
		t.Skip("no symbolic links here")
	}
	err := Store(t.Context(), Codex(dir), []byte(`{"OPENAI_API_KEY":"x"}`))
	require.ErrorContains(t, err, "auth.json is a symbolic link: remove it first")
	got, err := os.ReadFile(target)
	require.NoError(t, err)
	assert.Equal(t, "kept", string(got))
}
