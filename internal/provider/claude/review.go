package claude

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"time"

	"mcpagents/internal/agent/job"
	"mcpagents/internal/provider/oneshot"
	"mcpagents/internal/sandbox/wire"
)

// Causes of the end of a review's context.
var (
	errCanceled = errors.New("canceled")
	errDeadline = errors.New("the deadline has passed")
	errStopped  = errors.New("bridge stopped")
	errSilent   = errors.New("no first event")
)

// observer hears of a review while it runs.
type observer struct {
	status func(string) // a new status
	active func()       // a sign of life
}

// outcome is how a review ended. Reason is the end of its message, empty for a
// completed one.
type outcome struct {
	state  job.State
	reason string
	text   string
}

// failed is an outcome without a verdict. The provider's own words are never
// part of it.
func failed(reason string) outcome { return outcome{state: job.Failed, reason: reason} }

// review runs one review to its end, with one retry for a blank verdict. When
// it returns, its sandboxes are gone.
func (p *Provider) review(ctx context.Context, prompt, dir, root string, see observer) (o outcome, tries int) {
	argv := reviewArgv(p.cfg.Model, p.cfg.Effort, p.hidden(dir, root))
	for tries = 1; ; tries++ {
		a := p.attempt(ctx, argv, prompt, dir, root, see)
		o = p.decide(ctx, a)
		if o.state != "" {
			return o, tries
		}
		if tries == attempts {
			return failed("returned an empty result twice"), tries
		}
		see.status("retrying after an empty result")
		if errors.Is(context.Cause(ctx), errDeadline) {
			return failed("timed out before retry"), tries
		}
	}
}

// attempted is what one run of the CLI came to.
type attempted struct {
	started  bool
	startErr error
	result   *result
	silent   bool   // there was no event in the time for the first
	tooLong  bool   // a line of the stream
	detail   string // of an end that was not the CLI's own
	closed   error  // why the sandbox could not be verified gone
}

// decide makes the outcome of an attempt; no state means that the verdict was
// blank. How the CLI exited does not count.
func (p *Provider) decide(ctx context.Context, a attempted) outcome {
	// A verdict that was there before the deadline counts; a cancel counts anyway.
	if cause := context.Cause(ctx); cause != nil && (a.result == nil || !errors.Is(cause, errDeadline)) {
		return p.stopped(cause, a.closed)
	}
	switch {
	case !a.started:
		p.log.Warn("Claude could not be started for a job", "error", a.startErr)
		return failed("failed to start provider: " + a.startErr.Error())
	case a.silent:
		return failed(fmt.Sprintf("gave no first event within %dms: it may wait for a login or for an input", p.cfg.FirstEvent.Milliseconds()))
	case a.tooLong:
		return failed(errEventTooLong.Error())
	case a.result == nil:
		return failed("provider exited without a result" + a.detail)
	case len(a.result.text) > maxResult:
		return failed("final result exceeded the 10 MiB job limit")
	case a.result.isError:
		return failed("provider returned an error")
	case strings.TrimSpace(a.result.text) == "":
		return outcome{}
	}
	return outcome{state: job.Completed, text: a.result.text}
}

// stopped is the outcome of a review that was told to end.
func (p *Provider) stopped(cause, closed error) outcome {
	o := outcome{state: job.Canceled, reason: "canceled"}
	switch {
	case errors.Is(cause, errDeadline):
		o = failed(fmt.Sprintf("timed out after %dms", p.cfg.JobTimeout.Milliseconds()))
	case errors.Is(cause, errStopped):
		o.reason = "bridge stopped"
	}
	if closed != nil {
		o.reason += "; its sandbox could not be verified gone"
	}
	return o
}

// attempt runs the CLI once in a sandbox of its own.
func (p *Provider) attempt(ctx context.Context, argv []string, prompt, dir, root string, see observer) (a attempted) {
	command, err := p.command(ctx, argv, dir, root, true)
	if err != nil {
		return attempted{startErr: err}
	}
	if root == p.firstRoot() {
		command.Take = p.takeSpare
	}
	t, err := p.cfg.Launcher.Start(ctx, command)
	if err != nil {
		return attempted{startErr: err}
	}
	heard, silent := context.WithCancelCause(ctx)
	defer silent(nil)
	first := time.AfterFunc(p.cfg.FirstEvent, func() { silent(errSilent) })
	defer first.Stop()
	r := &run{turn: t, see: see, first: first, term: p.cfg.TermAfter, kill: p.cfg.KillAfter, finished: make(chan struct{})}
	r.play(heard, prompt)
	a = attempted{started: true, result: r.result, tooLong: r.tooLong, detail: endOf(t), silent: errors.Is(context.Cause(heard), errSilent)}
	if a.closed = t.Close(ctx); a.closed != nil {
		p.log.Warn("a sandbox could not be removed", "error", a.closed)
	}
	return a
}

// endOf says why a CLI ended that did not do so by itself, as the end of a
// sentence; empty for all others.
func endOf(t *oneshot.Turn) string {
	select {
	case <-t.Done():
	default:
		return ""
	}
	switch exit, err := t.Wait(context.Background()); {
	case err != nil:
		return ": " + err.Error()
	case exit.Reason == wire.ReasonMemory:
		return ": the sandbox reached its memory limit (--memory)"
	}
	return ""
}

// run is a CLI at work.
type run struct {
	turn       *oneshot.Turn
	see        observer
	first      *time.Timer // runs until the first event
	term, kill time.Duration

	finished chan struct{} // closed when the CLI has nothing more to do
	once     sync.Once

	result  *result // the first one; read after play
	tooLong bool
}

// play gives the CLI its prompt and hears it until it has ended or nothing more
// of it is wanted.
func (r *run) play(ctx context.Context, prompt string) {
	var workers sync.WaitGroup
	workers.Go(func() { r.write(ctx, prompt) })
	workers.Go(func() {
		err := readLines(r.turn.Stdout(), maxEvent, func(line []byte) { r.hear(ctx, line) })
		if errors.Is(err, errEventTooLong) {
			r.tooLong = r.result == nil
			r.finish()
			_, _ = io.Copy(io.Discard, r.turn.Stdout())
		}
	})
	workers.Go(func() {
		chunk := make([]byte, 32<<10)
		for {
			if _, err := r.turn.Stderr().Read(chunk); err != nil {
				return
			}
			r.see.active()
		}
	})
	r.end(ctx)
	workers.Wait()
}

// hear takes one line of the stream. What the CLI gives as a result once it was
// told to stop is none.
func (r *run) hear(ctx context.Context, line []byte) {
	e, alive := parseEvent(line)
	if !alive {
		return
	}
	r.first.Stop()
	r.see.active()
	if r.result != nil || ctx.Err() != nil {
		return
	}
	if e.status != "" {
		r.see.status(e.status)
	}
	if e.result != nil {
		r.result = e.result
		r.finish()
	}
}

func (r *run) finish() { r.once.Do(func() { close(r.finished) }) }

// write owns the CLI's stdin: the prompt, an interrupt if the review shall
// stop, and the end of the input, before which the CLI waits for more.
func (r *run) write(ctx context.Context, prompt string) {
	in := r.turn.Stdin()
	_, err := in.Write(userLine(prompt))
	select {
	case <-r.finished:
	case <-r.turn.Done():
	case <-ctx.Done():
		if err == nil {
			_, _ = in.Write(interruptLine("interrupt-1"))
		}
	}
	_ = in.Close()
}

// end waits for the CLI's end. Once it has given its result, or shall stop, it
// gets the time of term, then TERM, then that of kill, then KILL: Claude Code
// leaves what its tools started behind at TERM, so the sandbox goes anyway.
func (r *run) end(ctx context.Context) {
	select {
	case <-r.turn.Done():
		return
	case <-r.finished:
	case <-ctx.Done():
	}
	for _, rung := range []struct {
		wait time.Duration
		then func()
	}{
		{r.term, func() { _ = r.turn.Signal(syscall.SIGTERM, false) }},
		{r.kill, r.turn.Kill},
		{killedTime, func() { _ = r.turn.Close(ctx) }}, // ends the readers; the error stays for the next close
	} {
		timer := time.NewTimer(rung.wait)
		select {
		case <-r.turn.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		rung.then()
	}
}

// killedTime is what the end of a killed CLI may take.
const killedTime = 2 * time.Second
