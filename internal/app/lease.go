package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"

	"mcpagents/internal/provider/browser/lease"
	"mcpagents/internal/provider/browser/lease/dockerbox"
	"mcpagents/internal/provider/browser/lease/keeper"
	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/docker"
)

// LentBrowser is a browser in a container that other front ends borrow by a
// command.
type LentBrowser struct {
	DockerHost string // empty: found as the docker command finds it
	Image      string
	Network    string   // bridge or none
	Workspaces []string // directories that the browser may read, for uploads
}

// Keep holds the browser until its release, or until the process parent ends.
// It logs nothing, because no one reads the log of a keeper.
func (b LentBrowser) Keep(ctx context.Context, request lease.Request, parent int, in io.Reader, out io.Writer) error {
	rt, err := docker.New(b.DockerHost)
	if err != nil {
		return err
	}
	defer rt.Close()
	spec := sandbox.Spec{Instance: strconv.Itoa(os.Getpid())}
	for _, w := range b.Workspaces {
		path, err := filepath.Abs(w)
		if err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		if err != nil {
			return fmt.Errorf("--workspace %s: %w", w, err)
		}
		spec.Mounts = append(spec.Mounts, sandbox.Mount{Path: path, ReadOnly: true})
		spec.WorkDir = path
	}
	box := dockerbox.New(dockerbox.Config{Runtime: rt, BrowserImage: b.Image, Network: b.Network, Workspace: spec,
		Log: slog.New(slog.DiscardHandler)})
	return keeper.Keep(ctx, box, request, parent, in, out)
}
