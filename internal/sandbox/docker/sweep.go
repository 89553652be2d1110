package docker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"mcpagents/internal/sandbox"
)

// sweepAge is how long a container must have been created or ended before it
// is swept: a younger one may be about to start.
const sweepAge = 2 * time.Minute

// sweepable are the states of a container that cannot remove itself. A running
// one is never touched: its lifeline ends it, so nobody has to judge whose it
// is.
var sweepable = map[container.ContainerState]bool{
	container.StateCreated: true, container.StateExited: true, container.StateDead: true,
}

// Sweep removes containers with our labels that never started, or ended
// without being removed, more than two minutes ago.
func (r *Runtime) Sweep(ctx context.Context, dryRun bool) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	e, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	list, err := e.ours(ctx)
	if err != nil {
		return nil, err
	}
	var lines []string
	var failed error
	for _, c := range list {
		since, ok := e.idleSince(ctx, c)
		if !ok || time.Since(since) < r.sweepAge {
			continue
		}
		lines = append(lines, fmt.Sprintf("container %.12s: %s", c.ID, c.State))
		if dryRun {
			continue
		}
		err := e.ContainerRemove(ctx, c.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
		if err != nil && !gone(err) {
			failed = errors.Join(failed, fmt.Errorf("remove container %.12s: %w", c.ID, err))
		}
	}
	return lines, failed
}

// idleSince is when a container stopped being able to do anything by itself.
func (e *engine) idleSince(ctx context.Context, c container.Summary) (time.Time, bool) {
	if !sweepable[c.State] {
		return time.Time{}, false
	}
	created := time.Unix(c.Created, 0)
	if c.State == container.StateCreated {
		return created, true
	}
	info, err := e.ContainerInspect(ctx, c.ID)
	if err != nil || info.State == nil {
		return time.Time{}, false
	}
	ended, err := time.Parse(time.RFC3339Nano, info.State.FinishedAt)
	if err != nil {
		return time.Time{}, false
	}
	return ended, true
}

// ours lists the containers that carry our label, in any state.
func (e *engine) ours(ctx context.Context) ([]container.Summary, error) {
	list, err := e.ContainerList(ctx, container.ListOptions{All: true,
		Filters: filters.NewArgs(filters.Arg("label", LabelSandbox))})
	if err != nil {
		return nil, e.failure(fmt.Errorf("list sandbox containers: %w", err))
	}
	return list, nil
}

// List is every container of ours, in any state.
func (r *Runtime) List(ctx context.Context) ([]sandbox.Listed, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	e, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	list, err := e.ours(ctx)
	if err != nil {
		return nil, err
	}
	var out []sandbox.Listed
	for _, c := range list {
		l := sandbox.Listed{ID: c.ID, Sandbox: c.Labels[LabelSandbox], Provider: c.Labels[LabelProvider],
			Instance: c.Labels[LabelInstance], Image: c.Image, State: c.State, Created: time.Unix(c.Created, 0)}
		info, err := e.ContainerInspect(ctx, c.ID)
		if gone(err) {
			continue
		}
		if err == nil && info.Config != nil {
			l.User = info.Config.User
		}
		out = append(out, l)
	}
	return out, nil
}
