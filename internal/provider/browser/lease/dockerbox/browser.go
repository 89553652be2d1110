package dockerbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"mcpagents/internal/provider/browser/lease"
	"mcpagents/internal/provider/browser/lease/control"
	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/tail"
)

const (
	// program is the browser in its image: without the package's wrapper, which
	// adds flags.
	program = "/usr/lib/chromium/chromium-headless-shell"
	// profile is the browser's own directory, on the box's tmpfs.
	profile = "/tmp/profile"
	// listening begins the line by which Chromium says its id, and portTaken is a
	// part of the one after which it runs on without a control port.
	listening = "DevTools listening on "
	portTaken = "Address already in use"
	// maxLine bounds a line of Chromium's that is looked at, in bytes.
	maxLine = 4096
)

// browser is a running Chromium.
type browser struct {
	id      string // its own, new at each start
	proc    *sandbox.Process
	said    tail.Buffer // the end of its stderr
	readers sync.WaitGroup
}

// arguments are Chromium's. Its own sandbox stays on; it calls nobody by itself.
func arguments(port int, viewport string) []string {
	return []string{program,
		"--remote-debugging-port=" + strconv.Itoa(port), "--user-data-dir=" + profile,
		"--window-size=" + strings.Replace(viewport, "x", ",", 1),
		"--no-first-run", "--no-default-browser-check", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-domain-reliability", "--metrics-recording-only", "--disable-crash-reporter", "--disable-breakpad", "--password-store=basic",
		// A container's shared memory is 64 MiB: /tmp has room.
		"--disable-dev-shm-usage", "about:blank"}
}

// startBrowser starts Chromium and waits for its id. Errors are those of
// lease.Lessor.
func startBrowser(ctx context.Context, home *sandbox.Sandbox, cfg Config, req lease.Request) (*browser, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	env := cfg.Runtime.Environ(sandbox.Spec{Network: cfg.Network})
	proc, err := home.Start(ctx, sandbox.Command{Argv: arguments(req.LocalPort, req.Viewport), Env: env, Dir: "/"})
	if err != nil {
		return nil, &lease.ProvisioningError{Text: "the browser could not be started: " + err.Error(), Err: err}
	}
	b := &browser{proc: proc}
	ids := make(chan string, 1)
	b.readers.Go(func() { _, _ = io.Copy(io.Discard, proc.Stdout()) })
	b.readers.Go(func() { b.listen(proc.Stderr(), ids) })
	select {
	case id := <-ids:
		if id == "" {
			err = lease.ErrPortTaken
		}
		b.id = id
	case <-proc.Done():
		b.readers.Wait() // its last words
		err = &lease.ProvisioningError{Text: "the browser ended at its start: " + b.why()}
	case <-ctx.Done():
		err = &lease.ProvisioningError{Text: "the browser did not come up: " + b.why(), Err: context.Cause(ctx)}
	}
	if err == nil {
		return b, nil
	}
	stop, cancelStop := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancelStop()
	if stopErr := b.stop(stop); stopErr != nil {
		cfg.Log.Warn("end a browser that did not start: " + stopErr.Error())
	}
	return nil, err
}

// clean removes what a browser left in a box: it is not the next lease's to see,
// and its files are memory. Mounts below /tmp are not entered; that their
// directories cannot be removed is no failure.
func clean(ctx context.Context, home *sandbox.Sandbox, env []string) error {
	argv := []string{"find", "/tmp", home.Welcome().Home, "-xdev", "-mindepth", "1", "-delete"}
	if _, err := home.Run(ctx, sandbox.Command{Argv: argv, Env: env, Dir: "/"}); err != nil {
		return fmt.Errorf("clean the browser's box: %w", err)
	}
	return nil
}

// listen keeps the end of Chromium's stderr, and sends its id once it says it,
// or "" when its port is taken.
func (b *browser) listen(r io.Reader, ids chan<- string) {
	follow(r, func(line string) {
		_, _ = io.WriteString(&b.said, line+"\n")
		id, ok := "", strings.Contains(line, portTaken)
		if address, found := strings.CutPrefix(line, listening); found {
			id, ok = control.BrowserID(strings.TrimSpace(address))
		}
		if !ok {
			return
		}
		select {
		case ids <- id:
		default:
		}
	})
}

// follow reads lines of at most maxLine bytes until the end and hands them on.
func follow(r io.Reader, line func(string)) {
	buf := make([]byte, 0, maxLine)
	chunk := make([]byte, 4096)
	for {
		n, err := r.Read(chunk)
		for _, c := range chunk[:n] {
			switch {
			case c == '\n':
				line(string(buf))
				buf = buf[:0]
			case len(buf) < maxLine:
				buf = append(buf, c)
			}
		}
		if err != nil {
			if len(buf) > 0 {
				line(string(buf))
			}
			return
		}
	}
}

// ended reports whether Chromium has ended, or its box.
func (b *browser) ended() bool {
	select {
	case <-b.proc.Done():
		return true
	default:
		return false
	}
}

// why is what is known of a browser that has ended, or does not come up.
func (b *browser) why() string {
	said := strings.TrimSpace(b.said.String())
	if strings.Contains(said, "No usable sandbox") || strings.Contains(said, "Zygote process exited prematurely") {
		return "this host does not let Chromium make its own sandbox (user namespaces are off, or a security module forbids them)"
	}
	if !b.ended() {
		return "it said: " + said
	}
	exit, err := b.proc.Wait(context.Background())
	if err != nil {
		return err.Error()
	}
	text := fmt.Sprintf("exit status %d (%s)", exit.Code, exit.Reason)
	if said != "" {
		text += ": " + said
	}
	return text
}

// stop ends Chromium and everything that it started, and waits for it.
func (b *browser) stop(ctx context.Context) error {
	_, err := b.proc.Stop(ctx)
	var lost *sandbox.LostError
	if errors.As(err, &lost) || errors.Is(err, sandbox.ErrClosed) {
		err = nil // the box went, and the browser with it
	}
	if err == nil {
		b.readers.Wait()
	}
	return err
}
