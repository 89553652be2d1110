package docker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/versions"
	"github.com/docker/docker/client"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/tail"
	"mcpagents/internal/version"
	"mcpagents/internal/wire"
)

// Runtime makes sandboxes of containers.
type Runtime struct {
	engine *client.Client

	mu       sync.Mutex
	rootless *bool // asked once
}

// New returns the runtime of the engine at host, such as
// unix:///var/run/docker.sock; empty means DOCKER_HOST or the default socket. It
// does not contact the engine.
func New(host string) (*Runtime, error) {
	options := []client.Opt{client.FromEnv, client.WithAPIVersionNegotiation()}
	if host != "" {
		options = append(options, client.WithHost(host))
	}
	engine, err := client.NewClientWithOpts(options...)
	if err != nil {
		return nil, fmt.Errorf("use the Docker engine that --docker_host or DOCKER_HOST names: %w", err)
	}
	return &Runtime{engine: engine}, nil
}

// DefaultImage is the image of a provider that belongs to this build.
func DefaultImage(provider string) string { return "mcp-agents/" + provider + ":" + version.Version }

// Name is docker.
func (r *Runtime) Name() string { return "docker" }

// Close lets the connections to the engine go.
func (r *Runtime) Close() error { return r.engine.Close() }

// Image is what an image's labels say.
type Image struct {
	ID         string
	CLIVersion string
}

// Inspect reads the labels of an image and refuses one whose init speaks
// another protocol, without starting a container.
func (r *Runtime) Inspect(ctx context.Context, ref string) (Image, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	info, err := r.engine.ImageInspect(ctx, ref)
	if errdefs.IsNotFound(err) {
		return Image{}, &ImageError{ref, "is missing: build it with `make images`, or name another with --image"}
	}
	if err != nil {
		return Image{}, engineError(r.engine.DaemonHost(), fmt.Errorf("inspect the image: %w", err))
	}
	var labels map[string]string
	if info.Config != nil {
		labels = info.Config.Labels
	}
	if got := labels[LabelProtocol]; got != strconv.Itoa(wire.Version) {
		if got == "" {
			return Image{}, &ImageError{ref, "holds no sandbox-init (no label " + LabelProtocol + "): build one with `make images`"}
		}
		return Image{}, &ImageError{ref, fmt.Sprintf("speaks sandbox protocol %s and this front end %d: rebuild it with `make images`", got, wire.Version)}
	}
	return Image{ID: info.ID, CLIVersion: labels[LabelCLI]}, nil
}

// Start makes the container, attaches to it and starts it, in that order: an
// engine remembers an input that was closed before.
func (r *Runtime) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Instance, error) {
	if _, err := r.Inspect(ctx, spec.Image); err != nil {
		return nil, err
	}
	f, err := r.facts(ctx, spec)
	if err != nil {
		return nil, err
	}
	config, host := configure(spec, f)
	create, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	made, err := r.engine.ContainerCreate(create, config, host, nil, nil, containerName(spec))
	if err != nil {
		return nil, r.createError(spec, err)
	}
	i := &instance{engine: r.engine, id: made.ID, grace: spec.Grace}
	if err := i.attachAndStart(ctx); err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer cancel()
		return nil, errors.Join(engineError(r.engine.DaemonHost(), err), i.Destroy(clean))
	}
	return i, nil
}

func containerName(spec sandbox.Spec) string {
	return "mcp-agents-" + spec.Provider + "-" + strings.ToLower(spec.ID[:min(12, len(spec.ID))])
}

func (r *Runtime) createError(spec sandbox.Spec, err error) error {
	if errdefs.IsInvalidArgument(err) && strings.Contains(err.Error(), "bind source path does not exist") {
		return fmt.Errorf("the engine does not see a directory to mount (is it on another machine, or not shared with it?): %w", err)
	}
	return engineError(r.engine.DaemonHost(), fmt.Errorf("create the %s container: %w", spec.Provider, err))
}

// facts asks the engine once what it is, and looks at the workspace.
func (r *Runtime) facts(ctx context.Context, spec sandbox.Spec) (facts, error) {
	rootless, err := r.isRootless(ctx)
	if err != nil {
		return facts{}, err
	}
	ws := workspaceOwner(spec.WorkDir)
	f := facts{rootless: rootless, version: version.Version}
	if f.user, err = choose(spec.User, rootless, selfIdentity(), ws); err != nil {
		return facts{}, err
	}
	if f.seccomp, err = Profile(spec.Provider); err != nil {
		return facts{}, err
	}
	f.roRecursive = versions.GreaterThanOrEqualTo(r.engine.ClientVersion(), "1.44")
	return f, nil
}

func (r *Runtime) isRootless(ctx context.Context) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rootless != nil {
		return *r.rootless, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	info, err := r.engine.Info(ctx)
	if err != nil {
		return false, engineError(r.engine.DaemonHost(), fmt.Errorf("ask the engine what it is: %w", err))
	}
	rootless := false
	for _, o := range info.SecurityOptions {
		rootless = rootless || strings.Contains(o, "name=rootless")
	}
	r.rootless = &rootless
	return rootless, nil
}

// instance is one container.
type instance struct {
	*stream
	engine *client.Client
	id     string
	grace  time.Duration
	diag   tail.Buffer
}

func (i *instance) ID() string { return i.id }

func (i *instance) Diagnostics() string { return i.diag.String() }

func (i *instance) attachAndStart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := i.engine.ContainerAttach(ctx, i.id, container.AttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return fmt.Errorf("attach to the container: %w", err)
	}
	i.stream = &stream{conn: conn, diag: &i.diag}
	if err := i.engine.ContainerStart(ctx, i.id, container.StartOptions{}); err != nil {
		return fmt.Errorf("start the container: %w", err)
	}
	return nil
}

// Close ends the lifeline.
func (i *instance) Close() error {
	if i.stream == nil {
		return nil
	}
	return i.stream.Close()
}

// Destroy ends the lifeline, gives init its grace, then removes the container
// by force, and returns when the engine no longer knows it.
func (i *instance) Destroy(ctx context.Context) error {
	_ = i.Close()
	if i.stream != nil && i.awaitRemoval(ctx, i.grace+2*time.Second) == nil {
		return nil
	}
	err := i.engine.ContainerRemove(ctx, i.id, container.RemoveOptions{Force: true, RemoveVolumes: true})
	if err != nil && !gone(err) && !errdefs.IsConflict(err) { // conflict: the removal is under way
		return engineError(i.engine.DaemonHost(), fmt.Errorf("remove container %.12s: %w", i.id, err))
	}
	if err := i.awaitRemoval(ctx, callTimeout); err != nil {
		return fmt.Errorf("container %.12s is still there (remove it with `docker rm -f %.12s`): %w", i.id, i.id, err)
	}
	return nil
}

// awaitRemoval waits until the engine no longer knows the container. The
// engine's wait for "removed" can miss a removal that is already under way, so
// the container is looked up as well.
func (i *instance) awaitRemoval(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	removed, failed := i.engine.ContainerWait(ctx, i.id, container.WaitConditionRemoved)
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	for {
		if _, err := i.engine.ContainerInspect(ctx, i.id); gone(err) {
			return nil
		}
		select {
		case <-removed:
			removed = nil
		case <-failed:
			failed = nil
		case <-look.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
