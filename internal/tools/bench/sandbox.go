package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"strings"
	"sync"
	"time"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/docker"
	"mcpagents/internal/sandbox/pool"
)

var quiet = slog.New(slog.DiscardHandler)

func (b *bench) spec() sandbox.Spec {
	return sandbox.Spec{Provider: "codex", Instance: "bench", Image: b.fakeImage, Network: "none", FilesDir: ".codex", WorkDir: b.workspace,
		Mounts: []sandbox.Mount{{Path: b.workspace}}}
}

// firstByte spawns a command that says something, and returns the time until it
// did, from begin.
func firstByte(ctx context.Context, rt sandbox.Runtime, box *sandbox.Sandbox, begin time.Time) (time.Duration, error) {
	p, err := box.Spawn(ctx, sandbox.Command{Argv: []string{"echo", "up"}, Env: rt.Environ(sandbox.Spec{}), Dir: "/"})
	if err != nil {
		return 0, err
	}
	_, err = io.ReadFull(p.Stdout(), make([]byte, 1))
	return time.Since(begin), err
}

func (b *bench) cold(ctx context.Context, rt sandbox.Runtime) (time.Duration, error) {
	begin := time.Now()
	box, err := sandbox.Open(ctx, rt, b.spec(), quiet)
	if err != nil {
		return 0, err
	}
	took, err := firstByte(ctx, rt, box, begin)
	return took, errors.Join(err, box.Close(ctx))
}

// sameOptions are those of our containers, for `docker run -i`.
func (b *bench) sameOptions() []string {
	return []string{"run", "-i", "--rm", "--network", "none", "--user", "1000:1000", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
		"--read-only", "--log-driver", "none", "--memory", "4g", "--memory-swap", "4g", "--cpus", "2", "--pids-limit", "512",
		"--tmpfs", "/tmp:rw,exec,nosuid,nodev,size=1g", "--tmpfs", docker.Home + ":rw,exec,nosuid,nodev,size=1g,mode=0700,uid=1000,gid=1000",
		"--mount", "type=bind,src=" + b.workspace + ",dst=" + b.workspace, "--entrypoint", "echo", b.fakeImage, "up"}
}

// coldSandbox: a new sandbox until its command's first byte, beside `docker run
// -i` with the same options.
func (b *bench) coldSandbox(ctx context.Context) error {
	rt, err := docker.New("")
	if err != nil {
		return err
	}
	defer rt.Close()
	ours, bare, err := alternate(15,
		func() (time.Duration, error) { return b.cold(ctx, rt) },
		func() (time.Duration, error) {
			begin := time.Now()
			cmd := exec.CommandContext(ctx, "docker", b.sameOptions()...)
			out, err := cmd.StdoutPipe()
			if err != nil {
				return 0, err
			}
			if err := cmd.Start(); err != nil {
				return 0, err
			}
			_, err = io.ReadFull(out, make([]byte, 1))
			took := time.Since(begin)
			_, _ = io.Copy(io.Discard, out)
			return took, errors.Join(err, cmd.Wait())
		})
	if err != nil {
		return err
	}
	b.ratio("cold sandbox to the first byte", ours, bare, "1.10")
	return nil
}

// spares: the first byte of a command in a spare, beside a cold sandbox.
func (b *bench) spares(ctx context.Context) error {
	rt, err := docker.New("")
	if err != nil {
		return err
	}
	defer rt.Close()
	const rounds = 11
	open := func(ctx context.Context, s sandbox.Spec) (*sandbox.Sandbox, error) {
		return sandbox.Open(ctx, rt, s, quiet)
	}
	p := pool.New(b.spec(), 1, open, rt.Fingerprint, quiet)
	ours, bare, err := alternate(rounds,
		func() (time.Duration, error) {
			for p.Ready() == 0 {
				if err := pause(ctx); err != nil {
					return 0, err
				}
			}
			begin := time.Now()
			box, err := p.Take(ctx)
			if err != nil {
				return 0, err
			}
			took, err := firstByte(ctx, rt, box, begin)
			return took, errors.Join(err, box.Close(ctx))
		},
		func() (time.Duration, error) { return b.cold(ctx, rt) })
	err = errors.Join(err, p.Close(ctx))
	if err != nil {
		return err
	}
	b.ratio("spawn in a spare to the first byte, beside a cold sandbox", ours, bare, "0.020")
	return nil
}

func pause(ctx context.Context) error {
	select {
	case <-time.After(50 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// eightAtOnce: eight cold sandboxes at once, until the last one's first byte.
func (b *bench) eightAtOnce(ctx context.Context) error {
	rt, err := docker.New("")
	if err != nil {
		return err
	}
	defer rt.Close()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	begin := time.Now()
	var last time.Duration
	for range 8 {
		wg.Go(func() {
			took, err := b.cold(ctx, rt)
			mu.Lock()
			defer mu.Unlock()
			last, failed = max(last, took), errors.Join(failed, err)
		})
	}
	wg.Wait()
	if failed != nil {
		return failed
	}
	b.row("eight cold sandboxes at once, the slowest first byte", short(last), "", "all gone after "+short(time.Since(begin)), "")
	return nil
}

// spareMemory: what a hundred spares cost the host.
func (b *bench) spareMemory(ctx context.Context) error {
	rt, err := docker.New("")
	if err != nil {
		return err
	}
	defer rt.Close()
	const n = 100
	before, err := memoryUsed()
	if err != nil {
		return err
	}
	var boxes []*sandbox.Sandbox
	var failed error
	for range n {
		box, err := sandbox.Open(ctx, rt, b.spec(), quiet)
		if err != nil {
			failed = err
			break
		}
		boxes = append(boxes, box)
	}
	after, err := memoryUsed()
	failed = errors.Join(failed, err)
	var wg sync.WaitGroup
	for _, box := range boxes {
		wg.Go(func() { _ = box.Close(ctx) })
	}
	wg.Wait()
	if failed != nil {
		return failed
	}
	each := float64(after-before) / n / (1 << 20)
	b.row("memory of a spare (of a hundred), shims and engine included", fmt.Sprintf("%.1f MiB", each), "", "", "5 MB of its own")
	left, err := exec.CommandContext(ctx, "docker", "ps", "-aq", "--filter", "label="+docker.LabelInstance+"=bench").Output()
	if err == nil && strings.TrimSpace(string(left)) != "" {
		err = fmt.Errorf("containers were left: %s", left)
	}
	return err
}
