package credentials

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	// ExpiryMargin is how long before its end an access token counts as expiring. The CLIs
	// refresh up to 5 minutes before the end, and the rest is for the start of a sandbox.
	ExpiryMargin = 10 * time.Minute
	// RefreshHold is the longest time for which one snapshot keeps others waiting: a CLI may
	// well be idle and refresh much later.
	RefreshHold = 30 * time.Second

	// refreshWait bounds a wait for the refresher: a whole hold and some slack.
	refreshWait = RefreshHold + 5*time.Second
	refreshPoll = 200 * time.Millisecond
)

// Acquire is [Take] for a sandbox that is about to start, and makes it the only refresher of
// its login where there will be one: refresh tokens are single-use, so of two copies that are
// refreshed the second logs the user out.
//
// While the access token is good for more than [ExpiryMargin], or the credential does not tell,
// or there is nothing to refresh, Acquire returns at once and holds nothing. Otherwise it takes
// a lock that all front ends share. A snapshot that got it holds it until its first write-back
// that finds the user's file changed, [Snapshot.Invalidate], [Snapshot.Release], or for
// [RefreshHold]; the lock of a front end that died is free. All others wait, and return as soon
// as the user's file has a good token, whoever wrote it. A wait is said in one line of log,
// ends with ctx, and is never longer than 35 seconds: then the snapshot is returned without
// the lock, because a login that may work is better than a start that fails. For the same
// reason a directory that cannot be locked is only a warning.
//
// The caller must call Release once the sandbox has ended, or did not start.
func Acquire(ctx context.Context, src Source, log *slog.Logger) (*Snapshot, error) {
	s, err := Take(ctx, src)
	if err != nil || !s.expiring() {
		return s, err
	}
	patience := time.NewTimer(refreshWait)
	defer patience.Stop()
	for waiting := false; ; waiting = true {
		unlock, err := tryRefreshLock(src.Directory())
		if err != nil {
			log.Warn(fmt.Sprintf("the %s login is about to be refreshed and cannot be locked for it: "+
				"sandboxes that start now may log each other out", src.Name), "error", err)
			return s, nil
		}
		// Again after the lock: who held it may have refreshed.
		if s, err = Take(ctx, src); err != nil || !s.expiring() {
			if unlock != nil {
				unlock()
			}
			return s, err
		}
		if unlock != nil {
			s.hold(unlock)
			return s, nil
		}
		if !waiting {
			log.Info(fmt.Sprintf("waiting for another sandbox to refresh the %s login, at most %s", src.Name, refreshWait))
		}
		select {
		case <-time.After(refreshPoll):
		case <-patience.C:
			return s, nil
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for another sandbox to refresh the %s login: %w", src.Name, context.Cause(ctx))
		}
	}
}

// expiring: the CLI will refresh as soon as it runs.
func (s *Snapshot) expiring() bool {
	return !s.expires.IsZero() && time.Until(s.expires) <= ExpiryMargin
}

func (s *Snapshot) hold(unlock func()) {
	s.unlock = sync.OnceFunc(unlock)
	s.timer = time.AfterFunc(RefreshHold, s.unlock)
}

// Release lets others refresh the login. It may be called more than once, and on a snapshot
// that holds nothing.
func (s *Snapshot) Release() {
	if s.unlock != nil {
		s.timer.Stop()
		s.unlock()
	}
}
