package helper

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"mcpagents/internal/provider/browser/lease"
	"mcpagents/internal/provider/browser/lease/control"
)

// Exit statuses of a helper that mean something.
const (
	statusNone      = 69
	statusPortTaken = 75
)

// Config is what a Helper needs. Argv is required.
type Config struct {
	Argv []string // the operator's command, before our arguments
	// Env is the environment; nil means that of this process. NO_COLOR=1 is added.
	Env []string
	// Times bound the calls; a zero means its default.
	Times Times
	Log   *slog.Logger // nil means slog.Default
}

// Times bound the calls of a helper.
type Times struct {
	Acquire         time.Duration // 582 s
	Status          time.Duration // as Acquire
	ReleaseIdle     time.Duration // 60 s
	ReleaseShutdown time.Duration // 15 s
	TermGrace       time.Duration // between SIGTERM and SIGKILL; 30 s
}

// reserve is what remains of a request's deadline for everything around an
// acquire, and minAcquire what a helper gets however short that deadline is.
const (
	reserve    = 18 * time.Second
	minAcquire = time.Second
)

// AcquireTime is the time of acquire and status under a request's deadline.
func AcquireTime(deadline time.Duration) time.Duration { return max(minAcquire, deadline-reserve) }

// Helper is a lease.Lessor.
type Helper struct {
	cfg Config
}

// New returns the Lessor of cfg.
func New(cfg Config) *Helper {
	t := &cfg.Times
	t.Acquire = cmp.Or(t.Acquire, AcquireTime(10*time.Minute))
	t.Status = cmp.Or(t.Status, t.Acquire)
	t.ReleaseIdle = cmp.Or(t.ReleaseIdle, 60*time.Second)
	t.ReleaseShutdown = cmp.Or(t.ReleaseShutdown, 15*time.Second)
	t.TermGrace = cmp.Or(t.TermGrace, 30*time.Second)
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Helper{cfg}
}

// Acquire runs acquire. When ctx ends first the helper is made to end, and what
// it leased all the same comes back beside the error.
func (h *Helper) Acquire(ctx context.Context, req lease.Request) (lease.Record, error) {
	args := []string{"acquire", "--session", req.Session, "--local-cdp-port", strconv.Itoa(req.LocalPort), "--viewport", req.Viewport}
	if req.AppPort != 0 {
		args = append(args, "--app-port", strconv.Itoa(req.AppPort))
	}
	out := h.run(ctx, h.cfg.Times.Acquire, args)
	switch {
	case out.err != nil:
		return leftover(req, out), &lease.ProvisioningError{Text: "the browser lease helper " + out.err.Error()}
	case out.code == statusPortTaken:
		return lease.Record{}, lease.ErrPortTaken
	case out.code == statusNone:
		return lease.Record{}, unavailable(out)
	case out.code != 0:
		return lease.Record{}, &lease.ProvisioningError{Text: out.failure()}
	}
	rec, err := parseRecord(out.stdout, req)
	if err != nil {
		return rec, &lease.ProvisioningError{Text: err.Error()}
	}
	return rec, nil
}

// leftover is the lease of a helper that did not end well but had got one.
func leftover(req lease.Request, out output) lease.Record {
	rec, _ := parseRecord(out.stdout, req)
	return rec
}

// Status runs status.
func (h *Helper) Status(ctx context.Context, rec lease.Record) (lease.State, error) {
	out := h.run(ctx, h.cfg.Times.Status, []string{"status", "--session", rec.Session, "--generation", rec.Generation})
	switch {
	case out.err != nil:
		return lease.Unknown, fmt.Errorf("the browser lease helper %w", out.err)
	case out.code == 0:
		return lease.Live, nil
	case out.code == statusNone:
		return lease.Lost, nil
	}
	return lease.Unknown, fmt.Errorf("lease helper: %s", out.failure())
}

// Release runs release, to its end or that of its own time, whatever becomes of
// ctx.
func (h *Helper) Release(ctx context.Context, rec lease.Record, reason lease.Reason) error {
	limit := h.cfg.Times.ReleaseIdle
	if reason == lease.Shutdown {
		limit = h.cfg.Times.ReleaseShutdown
	}
	out := h.run(context.WithoutCancel(ctx), limit,
		[]string{"release", "--session", rec.Session, "--generation", rec.Generation, "--reason", string(reason)})
	switch {
	case out.err != nil:
		return out.err
	case out.code == 0:
		return nil
	case out.said() == "":
		return fmt.Errorf("exit %d", out.code)
	}
	return fmt.Errorf("exit %d: %s", out.code, tailOf(out.said()))
}

// Identity reads the browser's identity from its control port.
func (h *Helper) Identity(ctx context.Context, rec lease.Record) (string, error) {
	return control.Identity(ctx, nil, rec.BrowserURL)
}

// said is what the helper wrote to its stderr.
func (o output) said() string {
	return strings.TrimSpace(strings.ToValidUTF8(string(o.stderr), "\ufffd"))
}

// failure is why a helper failed, in its own words if it had any.
func (o output) failure() string {
	if said := o.said(); said != "" {
		return tailOf(said)
	}
	return fmt.Sprintf("lease helper exited with code %d", o.code)
}
