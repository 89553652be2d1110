package credentials

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// writeBack offers one version of auth.json and demands that there is no failure.
func writeBack(t *testing.T, s *Snapshot, data []byte) Outcome {
	t.Helper()
	o, err := s.WriteBack(t.Context(), "auth.json", data)
	require.NoError(t, err)
	return o
}

func TestWriteBackEachRotationAsItComes(t *testing.T) {
	src, dir := newHome(t, chatgpt(1))
	path := filepath.Join(dir, "auth.json")
	require.NoError(t, os.Chmod(path, 0o644))
	s := take(t, src)
	for generation := 2; generation < 5; generation++ {
		o := writeBack(t, s, chatgpt(generation))
		assert.Equal(t, Written, o.Status)
		assert.Equal(t, "persisted refreshed Codex auth.json back to CODEX_HOME", o.Message())
		requireCanonical(t, dir, chatgpt(generation))
		if info, err := os.Stat(path); runtime.GOOS != "windows" {
			require.NoError(t, err)
			assert.Equal(t, FileMode, info.Mode().Perm())
		}
		o = writeBack(t, s, chatgpt(generation)) // again at exit
		assert.Equal(t, Unchanged, o.Status)
		assert.Empty(t, o.Message())
	}
}

func TestNothingToWrite(t *testing.T) {
	t.Run("the copy is the snapshot", func(t *testing.T) {
		src, dir := newHome(t, chatgpt(1))
		assert.Equal(t, Unchanged, writeBack(t, take(t, src), chatgpt(1)).Status)
		assert.NoFileExists(t, filepath.Join(dir, LockFile))
	})
	t.Run("the user's file is the copy already", func(t *testing.T) {
		src, dir := newHome(t, chatgpt(1))
		s := take(t, src)
		write(t, filepath.Join(dir, "auth.json"), chatgpt(2))
		assert.Equal(t, Unchanged, writeBack(t, s, chatgpt(2)).Status)
		assert.Equal(t, Written, writeBack(t, s, chatgpt(3)).Status, "the file is a version we know")
		requireCanonical(t, dir, chatgpt(3))
	})
	for name, env := range map[string][]string{"empty snapshot": nil, "key variable": {"CODEX_API_KEY", "key"}} {
		t.Run(name, func(t *testing.T) {
			src, dir := newHome(t, nil)
			src.Getenv = variables(env...)
			o := writeBack(t, take(t, src), chatgpt(1))
			assert.Equal(t, Unchanged, o.Status)
			assert.Empty(t, o.Message())
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			assert.Empty(t, entries)
		})
	}
}

func TestOnlyTheCredentialIsWrittenBack(t *testing.T) {
	src, dir := newHome(t, chatgpt(1))
	write(t, filepath.Join(dir, "models_cache.json"), []byte(`{}`))
	s := take(t, src)
	for _, name := range []string{"models_cache.json", "config.toml", "../auth.json", "./auth.json", "AUTH.JSON", ""} {
		o, err := s.WriteBack(t.Context(), name, chatgpt(2))
		require.NoError(t, err)
		assert.Equal(t, Refused, o.Status, name)
		assert.Equal(t, "failed to persist Codex auth.json: refused the sandbox's copy: only auth.json is ever written back", o.Message())
	}
	requireCanonical(t, dir, chatgpt(1))
	assert.NoFileExists(t, filepath.Join(filepath.Dir(dir), "auth.json"))
}

func TestNewerLoginIsPreserved(t *testing.T) {
	const skipped = "skipped refreshed Codex auth.json write-back because the canonical auth changed since it was copied"
	newer := map[string]func(path string) error{
		"rewritten": func(path string) error { return os.WriteFile(path, chatgpt(7), 0o600) },
		"blanked":   func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"too long":  func(path string) error { return os.WriteFile(path, make([]byte, MaxFile+1), 0o600) },
		"replaced": func(path string) error {
			if err := os.WriteFile(path+".new", chatgpt(7), 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		},
		"removed": os.Remove,
	}
	for name, change := range newer {
		for _, when := range []string{"before", "locked", "temporary file complete"} {
			t.Run(name+" "+when, func(t *testing.T) {
				src, dir := newHome(t, chatgpt(1))
				path := filepath.Join(dir, "auth.json")
				s := take(t, src)
				changed := false
				s.step = func(step string) {
					if step == when {
						require.NoError(t, change(path))
						changed = true
					}
				}
				s.at("before")
				o := writeBack(t, s, chatgpt(2))
				require.True(t, changed)
				assert.Equal(t, CanonicalChanged, o.Status)
				assert.Equal(t, skipped, o.Message())
				after, err := os.ReadFile(path)
				if name == "removed" {
					require.ErrorIs(t, err, os.ErrNotExist)
				}
				assert.NotEqual(t, chatgpt(2), after)
				assert.Empty(t, temporary(t, dir))
			})
		}
	}
}

// TestWindowOfOneRename is the negative control of the test above: a change after the last
// check is not seen, so it is that check which preserves the newer login.
func TestWindowOfOneRename(t *testing.T) {
	src, dir := newHome(t, chatgpt(1))
	s := take(t, src)
	s.step = func(step string) {
		if step == "checked" {
			write(t, filepath.Join(dir, "auth.json"), chatgpt(7))
		}
	}
	assert.Equal(t, Written, writeBack(t, s, chatgpt(2)).Status)
	requireCanonical(t, dir, chatgpt(2))
}

func TestADirectoryThatIsGoneStaysGone(t *testing.T) {
	src, dir := newHome(t, chatgpt(1))
	s := take(t, src)
	require.NoError(t, os.RemoveAll(dir))
	assert.Equal(t, CanonicalChanged, writeBack(t, s, chatgpt(2)).Status)
	assert.NoDirExists(t, dir)
}

func TestInvalidated(t *testing.T) {
	for _, when := range []string{"before", "locked", "temporary file complete"} {
		t.Run(when, func(t *testing.T) {
			src, dir := newHome(t, chatgpt(1))
			s := take(t, src)
			s.step = func(step string) {
				if step == when {
					s.Invalidate()
				}
			}
			s.at("before")
			o := writeBack(t, s, chatgpt(2))
			assert.Equal(t, Invalidated, o.Status)
			assert.Equal(t, "skipped Codex auth.json write-back after authentication invalidation", o.Message())
			requireCanonical(t, dir, chatgpt(1))
			assert.Equal(t, Invalidated, writeBack(t, s, chatgpt(3)).Status, "for good")
		})
	}
}

func TestHostileCopyIsRefused(t *testing.T) {
	src, dir := newHome(t, chatgpt(1))
	s := take(t, src)
	for _, data := range []string{"", "{}", "null", `{"tokens":{"access_token":"sentinel"}}`, "sentinel"} {
		o := writeBack(t, s, []byte(data))
		assert.Equal(t, Refused, o.Status)
		assert.Contains(t, o.Message(), "failed to persist Codex auth.json: ")
		assert.NotContains(t, o.Message(), "sentinel")
	}
	requireCanonical(t, dir, chatgpt(1))
	assert.Equal(t, Written, writeBack(t, s, chatgpt(2)).Status, "a good one is still welcome")
}

func TestNeverOlderOverNewer(t *testing.T) {
	src, dir := newHome(t, chatgpt(1))
	s := take(t, src)
	writeBack(t, s, chatgpt(2))
	writeBack(t, s, chatgpt(3))
	for generation := 1; generation < 3; generation++ {
		o := writeBack(t, s, chatgpt(generation))
		assert.Equal(t, Refused, o.Status)
		assert.Contains(t, o.Message(), "earlier version")
	}
	requireCanonical(t, dir, chatgpt(3))
}

func TestTheCopyIsNotTheCallersSlice(t *testing.T) {
	src, dir := newHome(t, chatgpt(1))
	s := take(t, src)
	data := chatgpt(2)
	writeBack(t, s, data)
	clear(data)
	assert.Equal(t, Written, writeBack(t, s, chatgpt(3)).Status)
	requireCanonical(t, dir, chatgpt(3))
}

func TestCanonicalLinksAreRefused(t *testing.T) {
	src, dir := newHome(t, nil)
	real := filepath.Join(t.TempDir(), "real.json")
	write(t, real, chatgpt(1))
	path := filepath.Join(dir, "auth.json")
	if err := os.Symlink(real, path); err != nil {
		t.Skipf("this user cannot make symbolic links: %v", err)
	}
	s := take(t, src)
	assert.Equal(t, chatgpt(1), s.Files()[0].Data, "reading follows the link, as the CLI does")
	o := writeBack(t, s, chatgpt(2))
	assert.Equal(t, Refused, o.Status)
	assert.Contains(t, o.Message(), "the canonical file is a symbolic link")
	requireCanonical(t, dir, chatgpt(1))
	target, err := os.Readlink(path)
	require.NoError(t, err)
	assert.Equal(t, real, target)

	// A link that takes the file's place at the last moment, to a file of the right content.
	require.NoError(t, os.Remove(path))
	write(t, path, chatgpt(1))
	s = take(t, src)
	s.step = func(step string) {
		if step == "temporary file complete" {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Symlink(real, path))
		}
	}
	assert.Equal(t, Refused, writeBack(t, s, chatgpt(2)).Status)
	requireCanonical(t, dir, chatgpt(1))
}

func TestCanonicalDirectoryIsRefused(t *testing.T) {
	src, dir := newHome(t, chatgpt(1))
	s := take(t, src)
	require.NoError(t, os.Remove(filepath.Join(dir, "auth.json")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "auth.json"), 0o700))
	assert.Contains(t, writeBack(t, s, chatgpt(2)).Message(), "not a regular file")
}

func TestTheDirectoryIsLookedUpAgain(t *testing.T) {
	src, before := newHome(t, chatgpt(1))
	_, after := newHome(t, chatgpt(1))
	current := before
	src.Dir = ""
	src.Getenv = func(name string) string {
		if name == "CODEX_HOME" {
			return current
		}
		return ""
	}
	s := take(t, src)
	current = after
	assert.Equal(t, Written, writeBack(t, s, chatgpt(2)).Status)
	requireCanonical(t, before, chatgpt(1))
	requireCanonical(t, after, chatgpt(2))
}

// TestConcurrentWriters: several sandboxes refreshed copies of one login; one of them wins
// and the file is always a whole version.
func TestConcurrentWriters(t *testing.T) {
	src, dir := newHome(t, chatgpt(1))
	const writers = 8
	outcomes := make([]Outcome, writers)
	errs := make([]error, writers)
	snapshots := make([]*Snapshot, writers)
	for i := range writers {
		snapshots[i] = take(t, src)
	}
	var group sync.WaitGroup
	for i, s := range snapshots {
		group.Go(func() { outcomes[i], errs[i] = s.WriteBack(t.Context(), "auth.json", chatgpt(10+i)) })
	}
	group.Wait()
	winner := -1
	for i, o := range outcomes {
		require.NoError(t, errs[i])
		if o.Status == Written {
			require.Equal(t, -1, winner, "two winners")
			winner = i
			continue
		}
		assert.Equal(t, CanonicalChanged, o.Status)
	}
	require.NotEqual(t, -1, winner)
	requireCanonical(t, dir, chatgpt(10+winner))
}

func TestOneSnapshotManyGoroutines(t *testing.T) {
	src, dir := newHome(t, chatgpt(1))
	s := take(t, src)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { _, _ = s.WriteBack(t.Context(), "auth.json", chatgpt(2)) })
	}
	group.Wait()
	requireCanonical(t, dir, chatgpt(2))
}

func TestTheLockIsWaitedForWithinTheContext(t *testing.T) {
	src, dir := newHome(t, chatgpt(1))
	s := take(t, src)
	holder := flock.New(filepath.Join(dir, LockFile))
	require.NoError(t, holder.Lock())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	o, err := s.WriteBack(ctx, "auth.json", chatgpt(2))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, Failed, o.Status)
	assert.Equal(t, err.Error(), o.Message())
	assert.Contains(t, o.Message(), "failed to persist Codex auth.json: ")
	requireCanonical(t, dir, chatgpt(1))

	require.NoError(t, holder.Unlock())
	assert.Equal(t, Written, writeBack(t, s, chatgpt(2)).Status, "a failure is not for good")
}

// TestTheLockIsHeld from the second look at the file until after the rename, and no longer.
func TestTheLockIsHeld(t *testing.T) {
	src, dir := newHome(t, chatgpt(1))
	s := take(t, src)
	free := func() bool {
		other := flock.New(filepath.Join(dir, LockFile))
		locked, err := other.TryLock()
		require.NoError(t, err)
		require.NoError(t, other.Unlock())
		return locked
	}
	steps := 0
	s.step = func(step string) {
		steps++
		assert.False(t, free(), step)
	}
	assert.Equal(t, Written, writeBack(t, s, chatgpt(2)).Status)
	assert.NotZero(t, steps)
	assert.True(t, free())
}

func TestALockFileOfAnotherKindIsRefused(t *testing.T) {
	src, dir := newHome(t, chatgpt(1))
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Symlink(elsewhere, filepath.Join(dir, LockFile)); err != nil {
		t.Skipf("this user cannot make symbolic links: %v", err)
	}
	o, err := take(t, src).WriteBack(t.Context(), "auth.json", chatgpt(2))
	require.ErrorContains(t, err, LockFile+" is not a regular file: remove it")
	assert.Equal(t, Failed, o.Status)
	assert.NoFileExists(t, elsewhere)
	requireCanonical(t, dir, chatgpt(1))
}

// TestLeftovers: a temporary file of a writer that died is never used again, and goes once no
// living writer can own it.
func TestLeftovers(t *testing.T) {
	src, dir := newHome(t, chatgpt(1))
	prefix := filepath.Join(dir, fmt.Sprintf(".auth.json.mcp-agents-%d", os.Getpid()))
	dead, fresh, other := prefix+"-dead.tmp", prefix+".tmp", filepath.Join(dir, ".auth.json.other-1.tmp")
	old := time.Now().Add(-2 * leftoverAge)
	for _, path := range []string{dead, fresh, other} {
		write(t, path, []byte("stale"))
		require.NoError(t, os.Chmod(path, 0o644))
	}
	require.NoError(t, os.Chtimes(dead, old, old))
	require.NoError(t, os.Chtimes(other, old, old))

	assert.Equal(t, Written, writeBack(t, take(t, src), chatgpt(2)).Status)
	assert.NoFileExists(t, dead)
	for _, path := range []string{fresh, other} {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, "stale", string(data))
	}
	require.NoError(t, os.Remove(fresh))
	requireCanonical(t, dir, chatgpt(2))
}

func TestStatusNames(t *testing.T) {
	assert.Equal(t, "canonical changed", CanonicalChanged.String())
	assert.Equal(t, "failed", Failed.String())
	assert.Equal(t, "status(-1)", Status(-1).String())
}
