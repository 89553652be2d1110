// Package pool keeps spare sandboxes, so that a call costs a fork instead of a
// container: a few milliseconds instead of some hundred.
//
// A spare has greeted its front end and waits for its spawn; nothing of a login
// is in it. It is used once, is discarded after ten minutes or when its image or
// workspace is no longer the same, and is replaced behind the call that took it.
package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"mcpagents/internal/sandbox"
)

// MaxAge is how long a spare is kept.
const MaxAge = 10 * time.Minute

const (
	// openTime bounds the making of a spare, and closeTime its end.
	openTime  = 60 * time.Second
	closeTime = 30 * time.Second
	// retryAfter is the pause after a spare could not be made.
	retryAfter = 30 * time.Second
)

// Opener makes a sandbox; sandbox.Open with a runtime is one.
type Opener func(context.Context, sandbox.Spec) (*sandbox.Sandbox, error)

// Fingerprint names what a spare was made of beyond its spec: the image behind
// the name, the directories behind the paths. A spare whose fingerprint is no
// longer that of its spec is discarded.
type Fingerprint func(context.Context, sandbox.Spec) (string, error)

// Pool keeps spares of one spec. Close must be called.
type Pool struct {
	spec  sandbox.Spec
	size  int
	open  Opener
	print Fingerprint
	log   *slog.Logger

	ctx     context.Context
	stop    context.CancelFunc
	workers sync.WaitGroup
	wake    chan struct{}

	mu     sync.Mutex
	spares []spare // oldest first
	ending sync.WaitGroup
}

type spare struct {
	box   *sandbox.Sandbox
	print string
	born  time.Time
}

// New returns a pool that keeps size spares of spec; with 0 every Take is cold.
// It starts to make them at once.
func New(spec sandbox.Spec, size int, open Opener, print Fingerprint, log *slog.Logger) *Pool {
	ctx, stop := context.WithCancel(context.Background())
	p := &Pool{spec: spec, size: size, open: open, print: print, log: log, ctx: ctx, stop: stop, wake: make(chan struct{}, 1)}
	if size > 0 {
		log.Info(fmt.Sprintf("keeping %d spare sandboxes, about 5 MB of memory each", size))
		p.workers.Go(p.fill)
	}
	return p
}

// Take returns a sandbox: a spare that is still what its spec says, or a new
// one. It is the caller's to close.
func (p *Pool) Take(ctx context.Context) (*sandbox.Sandbox, error) {
	defer p.refill()
	for {
		s, ok := p.pop()
		if !ok {
			return p.open(ctx, p.spec)
		}
		now, err := p.print(ctx, p.spec)
		if err == nil && now == s.print && s.box.Err() == nil && time.Since(s.born) < MaxAge {
			return s.box, nil
		}
		p.discard(s)
	}
}

// Ready is how many spares wait now.
func (p *Pool) Ready() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.spares)
}

// Close ends the spares and waits for them.
func (p *Pool) Close(ctx context.Context) error {
	p.stop()
	p.workers.Wait()
	p.mu.Lock()
	left := p.spares
	p.spares = nil
	p.mu.Unlock()
	var mu sync.Mutex
	var failed error
	for _, s := range left {
		p.ending.Go(func() {
			if err := s.box.Close(ctx); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = errors.Join(failed, err)
			}
		})
	}
	p.ending.Wait()
	return failed
}

func (p *Pool) pop() (spare, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.spares) == 0 {
		return spare{}, false
	}
	s := p.spares[0]
	p.spares = p.spares[1:]
	return s, true
}

// discard ends a spare behind the caller's back.
func (p *Pool) discard(s spare) {
	p.ending.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		if err := s.box.Close(ctx); err != nil {
			p.log.Warn("a spare sandbox could not be removed", "error", err)
		}
	})
}

func (p *Pool) refill() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// fill makes spares one after another, and replaces those that grew old.
func (p *Pool) fill() {
	for {
		pause := p.dropOld()
		if p.missing() {
			pause = retryAfter
			if err := p.add(); err == nil {
				continue
			} else if p.ctx.Err() == nil {
				p.log.Debug("a spare sandbox could not be made", "error", err)
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-p.ctx.Done():
		case <-p.wake:
		case <-timer.C:
		}
		timer.Stop()
		if p.ctx.Err() != nil {
			return
		}
	}
}

func (p *Pool) missing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.spares) < p.size && p.ctx.Err() == nil
}

func (p *Pool) add() error {
	ctx, cancel := context.WithTimeout(p.ctx, openTime)
	defer cancel()
	// Before the opening: what changes meanwhile makes the spare stale.
	print, err := p.print(ctx, p.spec)
	if err != nil {
		return err
	}
	box, err := p.open(ctx, p.spec)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spares = append(p.spares, spare{box, print, time.Now()})
	return nil
}

// dropOld discards spares that ended or grew old, and returns how long until
// the next one does.
func (p *Pool) dropOld() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := MaxAge
	p.spares = slices.DeleteFunc(p.spares, func(s spare) bool {
		left := MaxAge - time.Since(s.born)
		if left <= 0 || s.box.Err() != nil {
			p.discard(s)
			return true
		}
		next = min(next, left)
		return false
	})
	return next
}
