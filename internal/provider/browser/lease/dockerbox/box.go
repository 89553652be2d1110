package dockerbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"mcpagents/internal/provider/browser/lease"
	"mcpagents/internal/sandbox"
)

// Providers are the marks of the two kinds of containers.
const (
	// Browser is the box.
	Browser = "chromium"
	// Tools is the tool server.
	Tools = "browser"
)

// Syscalls are the system calls that Chromium's own sandbox needs beyond the
// default seccomp profile. Each was found by removing it from a set that worked:
// without one Chromium exits with "Zygote process exited prematurely". The
// namespaces that it makes have no privilege outside.
func Syscalls() []string { return []string{"clone", "unshare", "chroot"} }

// openTimeout bounds the start of a container until its init has answered.
const openTimeout = 60 * time.Second

// Config is what boxes are made of.
type Config struct {
	Runtime sandbox.Runtime // one that makes containers
	// ToolImage holds chrome-devtools-mcp, BrowserImage Chromium.
	ToolImage, BrowserImage string
	// Network is the box's, and so the tool server's: bridge or none.
	Network string
	// Workspace is a tool server's sandbox without image, network and provider:
	// its mounts, user, limits and times. The browser sees the same mounts read-only,
	// so that a file can be uploaded by its path.
	Workspace sandbox.Spec
	// Command is the tool server's in its image; empty means chrome-devtools-mcp.
	Command []string
	// Dir is the tool server's working directory.
	Dir string
	// Env is added to the tool server's environment.
	Env []string
	Log *slog.Logger
}

// Box is a lease.Lessor and a lease.Downstream. Close must be called.
type Box struct {
	cfg Config

	turn chan struct{} // holds one token: opening, acquiring and releasing take turns

	mu     sync.Mutex
	open   *sandbox.Sandbox // the box, or nil
	joined string           // the box whose namespace the running tool server is in
	port   int              // the last one given out
	app    int              // the port forwarded into the open box
	loan   *loan            // the browser on lease, or nil
	loans  int              // so far
	closed bool
}

var (
	_ lease.Lessor     = (*Box)(nil)
	_ lease.Downstream = (*Box)(nil)
)

// New returns a Box. It makes nothing yet.
func New(cfg Config) *Box {
	b := &Box{cfg: cfg, turn: make(chan struct{}, 1), port: firstPort - 1}
	b.turn <- struct{}{}
	if len(b.cfg.Command) == 0 {
		b.cfg.Command = []string{command}
	}
	return b
}

// take waits for the turn; the returned function gives it back.
func (b *Box) take(ctx context.Context) (func(), error) {
	select {
	case <-b.turn:
		return func() { b.turn <- struct{}{} }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// ensure opens the box where none is open, or where it has ended. The caller has
// the turn.
func (b *Box) ensure(ctx context.Context) (*sandbox.Sandbox, error) {
	b.mu.Lock()
	box, closed := b.open, b.closed
	b.mu.Unlock()
	switch {
	case closed:
		return nil, errors.New("the browser's box was closed")
	case box != nil && box.Err() == nil:
		return box, nil
	case box != nil:
		b.cfg.Log.Warn("the browser's box was lost: " + box.Err().Error())
		if err := b.drop(ctx, box); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	box, err := sandbox.Open(ctx, b.cfg.Runtime, b.browserSpec(), b.cfg.Log)
	if err != nil {
		return nil, fmt.Errorf("open a box for the browser: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open, b.app = box, 0
	return box, nil
}

// drop forgets a box and what was in it, and waits until it is gone.
func (b *Box) drop(ctx context.Context, box *sandbox.Sandbox) error {
	b.mu.Lock()
	b.open = nil
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTimeout)
	defer cancel()
	if err := box.Close(ctx); err != nil {
		return fmt.Errorf("close the browser's box: %w", err)
	}
	return nil
}

// browserSpec is the box.
func (b *Box) browserSpec() sandbox.Spec {
	spec := b.cfg.Workspace
	spec.Provider, spec.Image, spec.Network, spec.NotRoot = Browser, b.cfg.BrowserImage, b.cfg.Network, true
	spec.Syscalls, spec.Mounts = Syscalls(), nil
	for _, m := range b.cfg.Workspace.Mounts {
		m.ReadOnly = true
		spec.Mounts = append(spec.Mounts, m)
	}
	return spec
}

// Close ends everything and returns when it is gone. Children of Start are
// closed by whoever started them. The context bounds it.
func (b *Box) Close(ctx context.Context) error {
	done, err := b.take(ctx)
	if err != nil {
		return fmt.Errorf("close the browser's box: %w", err)
	}
	defer done()
	b.mu.Lock()
	b.closed = true
	box := b.open
	b.mu.Unlock()
	if box == nil {
		return nil
	}
	return b.drop(ctx, box)
}
