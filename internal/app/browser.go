package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"mcpagents/internal/agent/job"
	"mcpagents/internal/config"
	"mcpagents/internal/mcp/stdio"
	"mcpagents/internal/provider/browser"
	"mcpagents/internal/provider/browser/lease"
	"mcpagents/internal/provider/browser/lease/dockerbox"
	"mcpagents/internal/provider/browser/lease/helper"
	"mcpagents/internal/provider/browser/lease/localtool"
	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/docker"
	"mcpagents/internal/version"
	"mcpagents/internal/workspace"
)

// boxCloseTimeout bounds the end of the browser's box when the client has left.
// What is still there then ends by its lifeline.
const boxCloseTimeout = 20 * time.Second

// borrowing is where browsers come from and what drives them.
type borrowing struct {
	lessor     lease.Lessor
	downstream lease.Downstream
	uploadNote string
	sweep      func(context.Context) // removes what earlier front ends could not; may be nil
	close      func()                // may be nil
}

// serveBrowser runs the MCP server of the browser.
func serveBrowser(opts config.Options, log *slog.Logger) (int, error) {
	b, err := borrow(opts, log)
	if err == nil {
		err = browser.CheckPatterns(opts.Browser.AllowedURLPatterns)
	}
	if err != nil {
		return 0, err
	}
	ctx, stop := UntilSignal()
	defer stop()
	if b.close != nil {
		defer b.close()
	}
	var sweeping sync.WaitGroup
	sweepCtx, endSweep := context.WithCancel(ctx)
	if b.sweep != nil {
		sweeping.Go(func() { b.sweep(sweepCtx) })
	}
	defer sweeping.Wait()
	defer endSweep()
	times := browser.DefaultTimes()
	times.Hard, times.Idle = opts.Browser.Timeout, opts.Browser.IdleTimeout
	return browser.Run(ctx, browser.Config{
		Lessor: b.lessor, Downstream: b.downstream, UploadNote: b.uploadNote, Session: job.NewID(), Viewport: opts.Browser.Viewport,
		AppPort: opts.Browser.AppPort, LogFile: opts.Browser.LogFile, AllowedURLPatterns: opts.Browser.AllowedURLPatterns,
		Version: version.Version, Ready: func() { log.Info("ready (provider: " + string(opts.Provider) + ")") },
		ClientIdle: opts.Server.StdioIdleTimeout, Watchdog: stdio.Watchdog{Interval: opts.Server.ParentWatchdog},
		HandshakeTimeout: opts.Server.HandshakeTimeout, Times: times, MaxMessage: int(opts.Server.MaxMessageBytes), Log: log,
	}, os.Stdin, os.Stdout), nil
}

// borrow chooses between the operator's helper, whose browser a process of this
// machine drives, and a browser in a container of our own.
func borrow(opts config.Options, log *slog.Logger) (borrowing, error) {
	if len(opts.Browser.LeaseCommand) > 0 { // the options require it of the local runtime
		return borrowing{
			lessor: helper.New(helper.Config{Argv: opts.Browser.LeaseCommand, Log: log,
				Times: helper.Times{Acquire: helper.AcquireTime(opts.Browser.Timeout)}}),
			downstream: &localtool.Downstream{Command: opts.Browser.Command, Log: log},
		}, nil
	}
	return borrowBox(opts, log)
}

// borrowBox is the browser in a container.
func borrowBox(opts config.Options, log *slog.Logger) (borrowing, error) {
	dir, err := os.Getwd()
	if err != nil {
		return borrowing{}, fmt.Errorf("find the startup directory: %w", err)
	}
	rt, err := docker.New(opts.Sandbox.DockerHost)
	if err != nil {
		return borrowing{}, err
	}
	rt.RunsIn(opts.Sandbox.SelfContainer)
	roots, rootsErr := resolveRoots(opts, dir, rt.Sockets())
	if _, ok := errors.AsType[*workspace.RootError](rootsErr); ok {
		return borrowing{}, rootsErr
	}
	spec := sandboxSpec(opts, dir)
	cfg := dockerbox.Config{Runtime: rt, ToolImage: imageOf(opts), BrowserImage: browserImageOf(opts), Network: browserNetworkOf(opts),
		Command: opts.Browser.Command, Env: chosenEnv(opts.Sandbox.Env), Dir: "/", Log: log}
	if rootsErr != nil { // a browser is of use without one
		log.Warn("no workspace: screenshots and traces can only be written inside the container: " + rootsErr.Error())
	}
	for _, root := range roots.Dirs() {
		spec.Mounts = append(spec.Mounts, sandbox.Mount{Path: root, ReadOnly: opts.Sandbox.Access == config.AccessReadOnly})
	}
	if len(spec.Mounts) > 0 {
		spec.WorkDir = roots.Default()
		cfg.Dir = spec.WorkDir
	}
	cfg.Workspace = spec
	box := dockerbox.New(cfg)
	return borrowing{lessor: box, downstream: box, uploadNote: browser.UploadMounted,
		sweep: func(ctx context.Context) { sweep(ctx, rt, log) },
		close: func() {
			ctx, cancel := context.WithTimeout(context.Background(), boxCloseTimeout)
			defer cancel()
			if err := box.Close(ctx); err != nil {
				log.Warn(err.Error())
			}
			_ = rt.Close()
		}}, nil
}

// browserNetworkOf is none where either flag says so: who closes the network of
// sandboxes means the browser's too.
func browserNetworkOf(opts config.Options) string {
	if opts.Sandbox.Network == "none" {
		return "none"
	}
	return opts.Browser.Network
}

// chosenEnv are the variables of this process that the operator named.
func chosenEnv(names []string) (env []string) {
	for _, name := range names {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}
