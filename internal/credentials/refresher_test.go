package credentials

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// expiring is a home whose access token ends within the margin, and its successor.
func expiring(t *testing.T) (src Source, dir string, next []byte) {
	src, dir = newHome(t, dated(1, time.Now().Add(ExpiryMargin)))
	return src, dir, dated(2, time.Now().Add(24*time.Hour))
}

// acquire is Acquire that must succeed, and its log.
func acquire(t *testing.T, src Source) (*Snapshot, string) {
	t.Helper()
	var log bytes.Buffer
	s, err := Acquire(t.Context(), src, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	return s, log.String()
}

// refreshLockFree reports whether nobody holds the refresher's lock.
func refreshLockFree(t *testing.T, dir string) bool {
	t.Helper()
	unlock, err := tryRefreshLock(dir)
	require.NoError(t, err)
	if unlock != nil {
		unlock()
	}
	return unlock != nil
}

// later is an Acquire under way.
type later struct {
	done     chan struct{}
	started  time.Time
	snapshot *Snapshot
	err      error
	took     time.Duration
	log      bytes.Buffer
}

func acquireLater(ctx context.Context, src Source) *later {
	l := &later{done: make(chan struct{}), started: time.Now()}
	go func() {
		defer close(l.done)
		l.snapshot, l.err = Acquire(ctx, src, slog.New(slog.NewTextHandler(&l.log, nil)))
		l.took = time.Since(l.started)
	}()
	return l
}

func (l *later) wait(t *testing.T) *Snapshot {
	t.Helper()
	<-l.done
	require.NoError(t, l.err)
	assert.Equal(t, 1, strings.Count(l.log.String(), "\n"), l.log.String())
	assert.Contains(t, l.log.String(), "waiting for another sandbox to refresh the Codex login, at most 35s")
	return l.snapshot
}

func TestAcquireHoldsNothing(t *testing.T) {
	far := time.Now().Add(time.Hour)
	tests := map[string]struct {
		credential []byte
		env        []string
	}{
		"good for more than the margin": {dated(1, time.Now().Add(ExpiryMargin+time.Minute)), nil},
		"no end known":                  {[]byte(`{"tokens":{"access_token":"opaque","refresh_token":"r"}}`), nil},
		"nothing to refresh":            {bytes.Replace(dated(1, far.Add(-2*time.Hour)), []byte("refresh-1"), nil, 1), nil},
		"a key":                         {[]byte(`{"OPENAI_API_KEY":"k"}`), nil},
		"not JSON":                      {[]byte("{"), nil},
		"a key variable":                {nil, []string{"CODEX_API_KEY", "k"}},
		"absent":                        {nil, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			src, dir := newHome(t, tt.credential)
			src.Getenv = variables(tt.env...)
			s, log := acquire(t, src)
			assert.Empty(t, log)
			assert.NoFileExists(t, filepath.Join(dir, RefreshLockFile))
			want := take(t, src)
			assert.Equal(t, want.Files(), s.Files())
			s.Release()
		})
	}
	_, err := Acquire(t.Context(), Codex(string([]byte{0})), slog.New(slog.DiscardHandler))
	assert.Error(t, err, "as Take")
}

func TestAcquireHoldsUntil(t *testing.T) {
	tests := map[string]struct {
		end  func(t *testing.T, s *Snapshot, dir string, next []byte)
		free bool
	}{
		"released": {func(_ *testing.T, s *Snapshot, _ string, _ []byte) { s.Release(); s.Release() }, true},
		"written back": {func(t *testing.T, s *Snapshot, _ string, next []byte) {
			assert.Equal(t, Written, writeBack(t, s, next).Status)
		}, true},
		"the user logged in": {func(t *testing.T, s *Snapshot, dir string, next []byte) {
			write(t, filepath.Join(dir, "auth.json"), chatgpt(7))
			assert.Equal(t, CanonicalChanged, writeBack(t, s, next).Status)
		}, true},
		"the file is the copy already": {func(t *testing.T, s *Snapshot, dir string, next []byte) {
			write(t, filepath.Join(dir, "auth.json"), next)
			assert.Equal(t, Unchanged, writeBack(t, s, next).Status)
		}, true},
		"the file is a link, which is never written": {func(t *testing.T, s *Snapshot, dir string, next []byte) {
			path := filepath.Join(dir, "auth.json")
			require.NoError(t, os.Rename(path, path+".real"))
			if err := os.Symlink(path+".real", path); err != nil {
				t.Skipf("this user cannot make symbolic links: %v", err)
			}
			assert.Equal(t, Refused, writeBack(t, s, next).Status)
		}, true},
		"invalidated": {func(_ *testing.T, s *Snapshot, _ string, _ []byte) { s.Invalidate() }, true},
		"the time is over": {func(_ *testing.T, _ *Snapshot, _ string, _ []byte) {
			time.Sleep(RefreshHold)
			synctest.Wait()
		}, true},
		"not before the time is over": {func(_ *testing.T, _ *Snapshot, _ string, _ []byte) {
			time.Sleep(RefreshHold - 1)
			synctest.Wait()
		}, false},
		"not by the copy as it was": {func(t *testing.T, s *Snapshot, _ string, _ []byte) {
			assert.Equal(t, Unchanged, writeBack(t, s, s.Files()[0].Data).Status)
		}, false},
		"not by half a file": {func(t *testing.T, s *Snapshot, _ string, next []byte) {
			assert.Equal(t, Refused, writeBack(t, s, next[:len(next)/2]).Status)
		}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src, dir, next := expiring(t)
				s, log := acquire(t, src)
				assert.Empty(t, log)
				require.False(t, refreshLockFree(t, dir))
				tt.end(t, s, dir, next)
				assert.Equal(t, tt.free, refreshLockFree(t, dir))
				s.Release()
				assert.True(t, refreshLockFree(t, dir))
			})
		})
	}
}

func TestWaitersGetTheRefreshedLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, dir, next := expiring(t)
		holder, _ := acquire(t, src)
		var waiters []*later
		for range 8 {
			waiters = append(waiters, acquireLater(t.Context(), src))
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		for _, w := range waiters {
			select {
			case <-w.done:
				t.Fatal("somebody did not wait")
			default:
			}
		}
		require.Equal(t, Written, writeBack(t, holder, next).Status)
		for _, w := range waiters {
			s := w.wait(t)
			assert.Equal(t, next, s.Files()[0].Data)
			assert.LessOrEqual(t, w.took, 10*time.Second+refreshPoll)
		}
		assert.True(t, refreshLockFree(t, dir), "a fresh login needs no lock")
	})
}

// TestWaitersSeeTheUsersLogin although the holder keeps its lock.
func TestWaitersSeeTheUsersLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, dir, next := expiring(t)
		holder, _ := acquire(t, src)
		defer holder.Release()
		w := acquireLater(t.Context(), src)
		synctest.Wait()
		write(t, filepath.Join(dir, "auth.json"), next)
		assert.Equal(t, next, w.wait(t).Files()[0].Data)
		assert.LessOrEqual(t, w.took, refreshPoll)
		assert.False(t, refreshLockFree(t, dir))
	})
}

// TestAnIdleHolderGivesWay: its CLI has refreshed nothing in time, so it is another's turn.
func TestAnIdleHolderGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, dir, _ := expiring(t)
		acquire(t, src) // and never released
		w := acquireLater(t.Context(), src)
		s := w.wait(t)
		assert.GreaterOrEqual(t, w.took, RefreshHold)
		assert.LessOrEqual(t, w.took, RefreshHold+refreshPoll)
		assert.False(t, refreshLockFree(t, dir), "it is the refresher now")
		s.Release()
	})
}

// TestPatienceEnds: with a lock that is never free a sandbox starts all the same, late.
func TestPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, dir, _ := expiring(t)
		unlock, err := tryRefreshLock(dir)
		require.NoError(t, err)
		defer unlock()
		w := acquireLater(t.Context(), src)
		s := w.wait(t)
		assert.Equal(t, refreshWait, w.took)
		assert.NotEmpty(t, s.Files())
		s.Release()
		assert.False(t, refreshLockFree(t, dir), "another's lock is not released")
	})
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, _, _ := expiring(t)
		holder, _ := acquire(t, src)
		defer holder.Release()
		ctx, cancel := context.WithCancel(t.Context())
		w := acquireLater(ctx, src)
		synctest.Wait()
		cancel()
		<-w.done
		require.ErrorIs(t, w.err, context.Canceled)
		assert.ErrorContains(t, w.err, "wait for another sandbox to refresh the Codex login")
		assert.Zero(t, w.took)
	})
}

func TestADirectoryThatCannotBeLocked(t *testing.T) {
	src, dir, _ := expiring(t)
	if err := os.Symlink(filepath.Join(t.TempDir(), "elsewhere"), filepath.Join(dir, RefreshLockFile)); err != nil {
		t.Skipf("this user cannot make symbolic links: %v", err)
	}
	s, log := acquire(t, src)
	assert.NotEmpty(t, s.Files())
	assert.Equal(t, 1, strings.Count(log, "\n"), log)
	assert.Contains(t, log, "level=WARN")
	assert.Contains(t, log, "cannot be locked")
	s.Release()
}

// TestAWriteBackDoesNotNeedTheRefreshLock: another sandbox, which runs already, may write
// while somebody is the refresher.
func TestAWriteBackDoesNotNeedTheRefreshLock(t *testing.T) {
	src, dir, next := expiring(t)
	running := take(t, src)
	s, _ := acquire(t, src)
	defer s.Release()
	assert.Equal(t, Written, writeBack(t, running, next).Status)
	requireCanonical(t, dir, next)
}
