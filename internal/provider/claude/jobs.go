package claude

import (
	"context"
	"sync"
	"time"

	"mcpagents/internal/agent/job"
	"mcpagents/internal/mcp/toolserver"
)

// jobs are the background reviews of a connection. The table and its jobs
// belong to the holder of the lock.
type jobs struct {
	p    *Provider
	work context.Context // parent of the reviews' contexts
	end  context.CancelCauseFunc
	live sync.WaitGroup

	mu     sync.Mutex
	table  *job.Table
	closed bool
}

// contract is the outside of the job tools, with what a caller must know of an
// end without a verdict.
func contract() job.Contract {
	c := job.Claude
	c.HintFailed = "\n\nThe sandbox of a review is destroyed before its end is reported, unless the message says otherwise; its " +
		"workspace was mounted read-only."
	return c
}

func newJobs(p *Provider, cfg job.Config) *jobs {
	j := &jobs{p: p}
	j.work, j.end = context.WithCancelCause(context.Background())
	cfg.Contract, cfg.DefaultWait, cfg.Log, cfg.After = contract(), DefaultStatusWait, p.log, j.after
	j.table = job.NewTable(cfg)
	return j
}

// after calls f under the lock when d has passed, unless it is taken back, by a
// holder of the lock.
func (s *jobs) after(d time.Duration, f func()) (cancel func()) {
	off := false
	timer := time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !off {
			f()
		}
	})
	return func() {
		off = true
		timer.Stop()
	}
}

// start begins a review and answers with its job.
func (s *jobs) start(prompt, dir, root string) toolserver.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return toolserver.Result{Text: "Server is shutting down", IsError: true, Structured: map[string]string{"code": "server_shutting_down"}}
	}
	j, refused := s.table.Start()
	if j == nil {
		return resultFrom(refused)
	}
	ctx, cancel := context.WithCancelCause(s.work)
	ctx, release := context.WithTimeoutCause(ctx, s.p.cfg.JobTimeout, errDeadline)
	j.OnCancel = func() { cancel(errCanceled) }
	s.p.log.Info("Claude job started", "job_id", j.ID, "deadline_ms", s.p.cfg.JobTimeout.Milliseconds())
	s.live.Go(func() {
		defer cancel(nil)
		defer release()
		s.run(ctx, j, prompt, dir, root)
	})
	return resultFrom(s.table.Started(j))
}

// run is a job's review.
func (s *jobs) run(ctx context.Context, j *job.Job, prompt, dir, root string) {
	began := time.Now()
	o, tries := s.p.review(ctx, prompt, dir, root, observer{
		status: func(text string) { s.locked(func() { j.Progress(text) }) },
		active: func() {
			s.locked(func() {
				if j.State() == job.Running { // no sign of life is a status of its own
					j.Active()
				}
			})
		},
	})
	s.p.log.Info("Claude job terminal", "job_id", j.ID, "state", o.state, "attempts", tries, "elapsed_ms", time.Since(began).Milliseconds())
	s.locked(func() {
		switch o.state {
		case job.Completed:
			j.Complete(o.text)
		case job.Canceled:
			j.Canceled(o.reason)
		default:
			j.Fail(o.reason, "")
		}
	})
}

func (s *jobs) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// keep makes a completed job of a text and returns its id.
func (s *jobs) keep(text string) (id string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j, _ := s.table.Start()
	if j == nil {
		return "", false
	}
	j.Complete(text)
	return j.ID, true
}

// status answers when the job has something new, its wait is over or the call
// is cancelled, which does not touch the job.
func (s *jobs) status(ctx context.Context, call toolserver.Call, id string, cursor int, wait time.Duration) toolserver.Result {
	answers := make(chan job.Answer, 1)
	s.mu.Lock()
	forget := s.table.Status(id, cursor, wait, func(a job.Answer) { answers <- a })
	s.mu.Unlock()
	var a job.Answer
	select {
	case a = <-answers:
	case <-ctx.Done():
		s.locked(forget)
		select {
		case a = <-answers:
		default:
			// The client is leaving, or dropped the call: what is now will do.
			s.locked(func() { s.table.Status(id, cursor, 0, func(now job.Answer) { a = now }) })
		}
	}
	if a.Message != "" {
		call.Progress(a.Message)
	}
	return resultFrom(a)
}

// Busy reports whether a review is running.
func (p *Provider) Busy() bool {
	p.jobs.mu.Lock()
	defer p.jobs.mu.Unlock()
	return len(p.jobs.table.Active()) > 0
}

// close ends every review and waits for them as long as ctx lives.
func (s *jobs) close(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end(errStopped)
	done := make(chan struct{})
	go func() { // ends with the last review, whose end the lifeline bounds
		defer close(done)
		s.live.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// resultFrom makes a tool result of an answer.
func resultFrom(a job.Answer) toolserver.Result {
	return toolserver.Result{Text: a.Text, Structured: a.Structured, IsError: a.IsError}
}
