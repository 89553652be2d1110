package dockerbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"mcpagents/internal/provider/browser/lease"
	"mcpagents/internal/provider/browser/lease/control"
	"mcpagents/internal/sandbox"
	"mcpagents/internal/selfcontainer"
)

const (
	// The control ports that are given out, one after another.
	firstPort = 9222
	lastPort  = 9421

	// startTimeout bounds Chromium's start: it takes half a second on an idle
	// machine.
	startTimeout = 60 * time.Second
	// appTimeout bounds the look whether the application's port answers.
	appTimeout = 2 * time.Second
	// releaseTimeout bounds Chromium's end.
	releaseTimeout = 15 * time.Second
)

// noBrowser begins what callers hear when no browser can be had.
const noBrowser = "GUI not verified — no browser box available"

// loan is a browser on lease.
type loan struct {
	record  lease.Record
	port    int
	home    *sandbox.Sandbox
	browser *browser
}

// alive reports whether the browser that was lent still runs.
func (l *loan) alive() bool {
	return l.home.Err() == nil && !l.browser.ended()
}

// Acquire starts Chromium in the box.
func (b *Box) Acquire(ctx context.Context, req lease.Request) (lease.Record, error) {
	if err := appAnswers(ctx, req.AppPort, selfcontainer.Inside(os.DirFS("/"))); err != nil {
		return lease.Record{}, err
	}
	if req.AppPort == req.LocalPort {
		return lease.Record{}, lease.ErrPortTaken
	}
	done, err := b.take(ctx)
	if err != nil {
		return lease.Record{}, &lease.ProvisioningError{Text: "waiting for the browser's box was given up", Err: err}
	}
	defer done()
	home, err := b.ensure(ctx)
	if err != nil {
		return lease.Record{}, &lease.UnavailableError{Cause: lease.NoBox, Text: noBrowser + "\n" + err.Error(), Detail: err.Error()}
	}
	b.mu.Lock()
	elsewhere, last := b.joined != "" && b.joined != home.ID(), b.loan
	b.mu.Unlock()
	if elsewhere {
		// The tool server sits in the namespace of a box that is gone. With another
		// port it is started again, in this one.
		return lease.Record{}, lease.ErrPortTaken
	}
	if last != nil {
		if err := b.end(ctx, last); err != nil {
			b.cfg.Log.Warn(err.Error())
			return lease.Record{}, lease.ErrPortTaken // that box is gone too
		}
	}
	if err := b.forward(ctx, home, req.AppPort); err != nil {
		return lease.Record{}, err
	}
	return b.lend(ctx, home, req)
}

// lend starts the browser of a request.
func (b *Box) lend(ctx context.Context, home *sandbox.Sandbox, req lease.Request) (lease.Record, error) {
	begin := time.Now()
	br, err := startBrowser(ctx, home, b.cfg, req)
	if err != nil {
		return lease.Record{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.loans++
	b.loan = &loan{port: req.LocalPort, home: home, browser: br, record: lease.Record{Session: req.Session,
		Generation: fmt.Sprintf("%.12s-%d", home.ID(), b.loans), BrowserURL: "http://127.0.0.1:" + strconv.Itoa(req.LocalPort)}}
	b.cfg.Log.Info(fmt.Sprintf("browser started in box %.12s after %s", home.ID(), time.Since(begin).Round(time.Millisecond)))
	return b.loan.record, nil
}

// forward makes the application's port reachable in the box.
func (b *Box) forward(ctx context.Context, home *sandbox.Sandbox, port int) error {
	b.mu.Lock()
	app := b.app
	b.mu.Unlock()
	if port == 0 || port == app {
		return nil
	}
	if err := home.Forward(ctx, port); err != nil {
		return &lease.ProvisioningError{Text: fmt.Sprintf("port %d of this machine could not be made reachable for the browser: "+
			"use another one with --browser_app_port", port), Err: err}
	}
	b.mu.Lock()
	b.app = port
	b.mu.Unlock()
	return nil
}

// appAnswers looks whether something listens on the application's port. Contained
// says that this process's loopback is a container's.
func appAnswers(ctx context.Context, port int, contained bool) error {
	if port == 0 {
		return nil
	}
	d := net.Dialer{Timeout: appTimeout}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	c, err := d.DialContext(ctx, "tcp4", address)
	if err != nil {
		text := fmt.Sprintf("GUI not verified — dev server not reachable on http://%s: start it there and call again", address)
		if contained {
			text += "; mcp-agents runs in a container, whose loopback is its own unless it is started with --network host"
		}
		return &lease.UnavailableError{Cause: lease.DevServer, Text: text, Detail: err.Error()}
	}
	_ = c.Close()
	return nil
}

// lent is the loan of a record, or nil when another one or none is out.
func (b *Box) lent(rec lease.Record) *loan {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.loan == nil || b.loan.record.Generation != rec.Generation {
		return nil
	}
	return b.loan
}

// Serve makes the browser's control port reachable through a listener, until
// that is closed or ctx ends.
func (b *Box) Serve(ctx context.Context, l net.Listener, rec lease.Record) error {
	out := b.lent(rec)
	if out == nil {
		return errors.New("this lease has ended")
	}
	return out.home.Serve(ctx, l, out.port)
}

// Ended is closed when the browser of the record has ended, or its box. Of a
// lease that is over it is nil.
func (b *Box) Ended(rec lease.Record) <-chan struct{} {
	if out := b.lent(rec); out != nil {
		return out.browser.proc.Done()
	}
	return nil
}

// Status says whether the browser that was lent still runs: with it everything
// is gone that the lease was about.
func (b *Box) Status(_ context.Context, rec lease.Record) (lease.State, error) {
	if l := b.lent(rec); l == nil || !l.alive() {
		return lease.Lost, nil
	}
	return lease.Live, nil
}

// Release ends the browser. The box stays for the next one.
func (b *Box) Release(ctx context.Context, rec lease.Record, _ lease.Reason) error {
	done, err := b.take(ctx)
	if err != nil {
		return fmt.Errorf("release the browser: %w", err)
	}
	defer done()
	if l := b.lent(rec); l != nil {
		return b.end(ctx, l)
	}
	return nil
}

// end ends a loan's browser and cleans up behind it; where that fails, it ends
// the box. The caller has
// the turn.
func (b *Box) end(ctx context.Context, l *loan) error {
	b.mu.Lock()
	b.loan = nil
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	err := l.browser.stop(ctx)
	if err == nil && l.home.Err() == nil {
		err = clean(ctx, l.home, b.cfg.Runtime.Environ(b.browserSpec()))
	}
	if err != nil && l.home.Err() == nil {
		return errors.Join(fmt.Errorf("end the browser: %w", err), b.drop(ctx, l.home))
	}
	return nil
}

// Identity asks the browser at the record's address for its id, over the box's
// stream. The answer of another browser than the one that was started here is
// returned too, and differs.
func (b *Box) Identity(ctx context.Context, rec lease.Record) (string, error) {
	l := b.lent(rec)
	switch {
	case l == nil:
		return "", errors.New("this lease has ended")
	case l.home.Err() != nil:
		return "", fmt.Errorf("the browser's box is gone: %w", l.home.Err())
	case l.browser.ended():
		return "", errors.New("the browser has ended: " + l.browser.why())
	}
	dial := func(context.Context, string, string) (net.Conn, error) { return l.home.Dial(l.port) }
	id, err := control.Identity(ctx, dial, rec.BrowserURL)
	if err != nil {
		return "", err
	}
	if id != l.browser.id {
		id += " instead of " + l.browser.id
	}
	return id + "@" + strings.ToLower(l.home.ID()), nil
}
