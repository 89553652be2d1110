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
	"github.com/docker/docker/api/types/image"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/tail"
	"mcpagents/internal/sandbox/wire"
	"mcpagents/internal/version"
)

// Runtime makes sandboxes of containers.
type Runtime struct {
	host     string // the operator's choice of an engine, or empty
	self     string // the container that we run in, where the operator named it
	finder   finder
	sweepAge time.Duration
	pulls    *pulls

	mu   sync.Mutex
	live *engine // the connection in use; nil before the first and after a failure
}

// New returns the runtime of the engine at host, such as
// unix:///var/run/docker.sock; empty means the engine that the docker command
// would use. It does not contact the engine, and only a host that cannot be one
// is an error: everything else can still change before a call.
func New(host string) (*Runtime, error) {
	r := &Runtime{host: host, finder: newFinder(), sweepAge: sweepAge, pulls: newPulls()}
	if host != "" {
		if err := (endpoint{host: host, how: "--docker_host"}).check(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// imagePrefix begins the names of our images.
const imagePrefix = "mcp-agents/"

// DefaultImage is the image of a provider that belongs to this build.
func DefaultImage(provider string) string { return imagePrefix + provider + ":" + version.Version }

// Name is docker.
func (r *Runtime) Name() string { return "docker" }

// Close ends pulls and lets the connections to the engine go.
func (r *Runtime) Close() error {
	r.pulls.close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live == nil {
		return nil
	}
	return r.live.Close()
}

// Image is what an image's labels say.
type Image struct {
	ID         string
	CLIVersion string
}

// Inspect reads the labels of an image and refuses one whose init speaks
// another protocol, without starting a container. A missing image is pulled
// when its name says from where.
func (r *Runtime) Inspect(ctx context.Context, ref string) (Image, error) {
	return r.inspect(ctx, ref, true)
}

// Look is Inspect that pulls nothing.
func (r *Runtime) Look(ctx context.Context, ref string) (Image, error) {
	return r.inspect(ctx, ref, false)
}

func (r *Runtime) inspect(ctx context.Context, ref string, pull bool) (Image, error) {
	e, err := r.connect(ctx)
	if err != nil {
		return Image{}, err
	}
	info, err := e.inspectImage(ctx, ref)
	if errdefs.IsNotFound(err) && fromRegistry(ref) {
		if !pull {
			return Image{}, &ImageError{Ref: ref, Text: "is missing: the first call pulls it, or `docker pull " + ref + "` does", Pulled: true}
		}
		if err := r.pulls.get(ctx, e, ref); err != nil {
			return Image{}, err
		}
		info, err = e.inspectImage(ctx, ref)
	}
	if errdefs.IsNotFound(err) {
		return Image{}, &ImageError{Ref: ref, Text: "is missing: build it with " + buildCommand(ref) + ", or name another with --image"}
	}
	if err != nil {
		return Image{}, e.failure(fmt.Errorf("inspect the image: %w", err))
	}
	return imageOf(ref, info)
}

func (e *engine) inspectImage(ctx context.Context, ref string) (image.InspectResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return e.ImageInspect(ctx, ref)
}

func imageOf(ref string, info image.InspectResponse) (Image, error) {
	var labels map[string]string
	if info.Config != nil {
		labels = info.Config.Labels
	}
	if err := protocolProblem(ref, labels[LabelProtocol]); err != nil {
		return Image{}, err
	}
	return Image{ID: info.ID, CLIVersion: labels[LabelCLI]}, nil
}

// protocolProblem is why an image whose label says this protocol cannot be
// used, and what to do.
func protocolProblem(ref, protocol string) error {
	number, err := strconv.Atoi(protocol)
	switch {
	case protocol == "":
		return &ImageError{Ref: ref, Text: "holds no sandbox-init (no label " + LabelProtocol + "): build one with " + buildCommand(ref)}
	case err == nil && number > wire.Version:
		return &ImageError{Ref: ref, Text: fmt.Sprintf("speaks sandbox protocol %d and this front end only %d: use the mcp-agents that the image was made for, "+
			"or rebuild the image with %s", number, wire.Version, buildCommand(ref))}
	case number != wire.Version:
		return &ImageError{Ref: ref, Text: fmt.Sprintf("speaks sandbox protocol %s and this front end %d: rebuild it with %s", protocol, wire.Version, buildCommand(ref))}
	}
	return nil
}

// buildCommand is what makes the image that a provider uses.
func buildCommand(ref string) string {
	name, ok := strings.CutPrefix(ref, imagePrefix)
	if name, _, _ = strings.Cut(name, ":"); !ok || name == "" {
		return "`mcp-agents images build`"
	}
	return "`mcp-agents images build " + name + "`"
}

// Start makes the container, attaches to it and starts it, in that order: an
// engine remembers an input that was closed before.
func (r *Runtime) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Instance, error) {
	if err := r.ready(ctx, spec.Image); err != nil {
		return nil, err
	}
	e, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	about, err := e.describe(ctx)
	if err != nil {
		return nil, err
	}
	f, err := factsOf(about, spec)
	if err != nil {
		return nil, err
	}
	if spec.Mounts, err = r.locate(ctx, e, spec.Mounts); err != nil {
		return nil, err
	}
	config, host := configure(spec, f)
	made, err := e.create(ctx, config, host, containerName(spec))
	if err != nil {
		return nil, startError(spec, about, e.failure(fmt.Errorf("create the %s container: %w", spec.Provider, err)))
	}
	i := &instance{engine: e, id: made.ID, grace: spec.Grace}
	if err := i.attachAndStart(ctx); err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer cancel()
		return nil, errors.Join(startError(spec, about, e.failure(err)), i.Destroy(clean))
	}
	return i, nil
}

// ready makes sure of the image, and asks meanwhile what the engine is, so that
// this is known when it is needed.
func (r *Runtime) ready(ctx context.Context, ref string) error {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	var engine sync.WaitGroup
	engine.Go(func() { _, _ = r.Engine(asking) })
	_, err := r.Inspect(ctx, ref)
	if err != nil {
		cancel()
	}
	engine.Wait()
	return err
}

// create makes a container. A call that was given up would leave one of which
// nobody knows the id, so the answer is still waited for when ctx has ended, but
// not for long.
func (e *engine) create(ctx context.Context, config *container.Config, host *container.HostConfig, name string) (container.CreateResponse, error) {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(createTimeout, cancel) })()
	return e.ContainerCreate(call, config, host, nil, nil, name)
}

func containerName(spec sandbox.Spec) string {
	return "mcp-agents-" + spec.Provider + "-" + strings.ToLower(spec.ID[:min(12, len(spec.ID))])
}

// startError adds what to do about errors that engines explain badly.
func startError(spec sandbox.Spec, about Engine, err error) error {
	text := strings.ToLower(err.Error())
	switch {
	case strings.Contains(text, "bind source path does not exist"):
		return fmt.Errorf("the engine at %s does not see a directory to mount: share it with the engine's machine, or name the container "+
			"that mcp-agents runs in with --self-container: %w", about.Host, err)
	case spec.OCIRuntime != "" && strings.Contains(text, "runtime") &&
		(strings.Contains(text, "unknown") || strings.Contains(text, "invalid") || strings.Contains(text, "not found")):
		return fmt.Errorf("the engine has no OCI runtime %q (it has %s): install it and name it in the engine's daemon.json, "+
			"or choose another with --oci_runtime: %w", spec.OCIRuntime, strings.Join(about.Runtimes, ", "), err)
	}
	return err
}

// factsOf is what the container's configuration depends on beside the spec.
func factsOf(about Engine, spec sandbox.Spec) (facts, error) {
	f := facts{rootless: about.Rootless, roRecursive: about.RecursiveReadOnly, podman: about.Podman, version: version.Version}
	var err error
	if f.user, err = choose(spec.User, about.Rootless, selfIdentity(), workspaceOwner(spec.WorkDir)); err != nil {
		return facts{}, err
	}
	if spec.NotRoot && f.user.uid == 0 {
		f.user = identity{uid: nobody, gid: nobody}
	}
	// Podman takes the name of a file where Docker takes the profile, and its
	// own default profile lets user namespaces be made.
	if about.Seccomp && !about.Podman {
		if f.seccomp, err = Profile(spec.Syscalls); err != nil {
			return facts{}, err
		}
	}
	return f, nil
}

// instance is one container.
type instance struct {
	*stream
	engine *engine
	id     string
	grace  time.Duration
	diag   tail.Buffer
}

func (i *instance) ID() string { return i.id }

func (i *instance) Diagnostics() string { return i.diag.String() }

func (i *instance) attachAndStart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := i.engine.attach(ctx, i.id)
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
	// A kept connection may have gone half open: what follows uses new ones. The
	// client stays usable, this only lets its idle connections go.
	_ = i.engine.Client.Close()
	if err := i.remove(ctx); err != nil {
		return fmt.Errorf("container %.12s is still there (remove it with `docker rm -f %.12s`): %w", i.id, i.id, err)
	}
	return nil
}

// removeAgain is the pause after a removal that the engine could not do.
const removeAgain = 500 * time.Millisecond

// remove removes the container by force. An engine that was just started again,
// or that is busy, may fail to (its files are in use) and can a moment later;
// one that cannot be reached ends the attempt.
func (i *instance) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for {
		err := i.engine.ContainerRemove(ctx, i.id, container.RemoveOptions{Force: true, RemoveVolumes: true})
		switch {
		case gone(err):
			return nil
		case err == nil, errdefs.IsConflict(err): // conflict: the removal is under way
			if err = i.awaitRemoval(ctx, 2*time.Second); err == nil {
				return nil
			}
		default:
			err = i.engine.failure(err)
			if _, unreachable := errors.AsType[*EngineError](err); unreachable {
				return err
			}
		}
		select {
		case <-time.After(removeAgain):
		case <-ctx.Done():
			return err
		}
	}
}

// awaitRemoval waits until the engine no longer knows the container. The
// engine's wait for "removed" can miss a removal that is already under way, so
// the container is looked up as well.
func (i *instance) awaitRemoval(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	removed, failed := i.engine.ContainerWait(ctx, i.id, container.WaitConditionRemoved)
	defer func() { // its goroutine waits until its one value is taken
		cancel()
		if removed != nil && failed != nil {
			select {
			case <-removed:
			case <-failed:
			}
		}
	}()
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
