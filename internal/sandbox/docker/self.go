package docker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/selfcontainer"
)

// RunsIn names the container that this process itself runs in, where it cannot
// be found; empty means that it is looked for.
func (r *Runtime) RunsIn(id string) { r.self = id }

// locate adds to each mount where the engine finds its content, when this
// process runs in a container of that engine.
func (r *Runtime) locate(ctx context.Context, e *engine, mounts []sandbox.Mount) ([]sandbox.Mount, error) {
	own, ok, err := r.ownContainer(ctx, e)
	if err != nil || !ok {
		return mounts, err
	}
	out := make([]sandbox.Mount, len(mounts))
	for i, m := range mounts {
		source, readOnly, err := own.Locate(m.Path)
		if err != nil {
			return nil, fmt.Errorf("share with a sandbox: %w", err)
		}
		// What we may only read, no sandbox writes for us.
		m.Source, m.ReadOnly = source, m.ReadOnly || readOnly
		out[i] = m
	}
	return out, nil
}

// OwnImage is the image of the container that this process runs in, or empty
// when it runs in none of that engine's.
func (r *Runtime) OwnImage(ctx context.Context) (string, error) {
	e, err := r.connect(ctx)
	if err != nil {
		return "", err
	}
	own, ok, err := r.ownContainer(ctx, e)
	if err != nil || !ok {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	info, err := e.ContainerInspect(ctx, own.ID)
	if err != nil {
		return "", e.failure(fmt.Errorf("inspect our own container: %w", err))
	}
	return info.Image, nil
}

// ownContainer looks this process's container up at the engine. There is none
// on a plain machine, nor when the engine does not know it: then the engine
// runs inside our container, or elsewhere, and paths are the engine's own.
func (r *Runtime) ownContainer(ctx context.Context, e *engine) (selfcontainer.Container, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if r.self != "" {
		info, err := e.ContainerInspect(ctx, r.self)
		if errdefs.IsNotFound(err) {
			return selfcontainer.Container{}, false, fmt.Errorf("--self-container %s: the engine at %s knows no such container: "+
				"name the one that mcp-agents runs in, or leave the flag out", r.self, redacted(e.at.host))
		}
		return ownMounts(info), err == nil, e.failure(err)
	}
	root := os.DirFS("/")
	hostname, _ := os.Hostname()
	for _, c := range selfcontainer.Candidates(root, hostname) {
		info, err := e.candidate(ctx, c, selfcontainer.UpperDir(root))
		if err != nil {
			return selfcontainer.Container{}, false, err
		}
		if info.ContainerJSONBase != nil {
			return ownMounts(info), true, nil
		}
	}
	return selfcontainer.Container{}, false, nil
}

// candidate looks a candidate up, and gives nothing when it is not ours.
func (e *engine) candidate(ctx context.Context, c selfcontainer.Candidate, upperDir string) (container.InspectResponse, error) {
	var none container.InspectResponse
	info, err := e.ContainerInspect(ctx, c.ID)
	switch {
	case errdefs.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, e.failure(fmt.Errorf("find our own container: %w", err))
	case info.ContainerJSONBase == nil || !strings.HasPrefix(info.ID, c.ID): // a name that looks like an id
		return none, nil
	case c.Certain || sameRoot(info, upperDir):
		return info, nil
	}
	// Ours, or that of another container whose network ours has joined.
	joined, err := e.joined(ctx, info.ID, strings.TrimPrefix(info.Name, "/"))
	if err != nil {
		return none, err
	}
	for _, id := range joined {
		if other, err := e.ContainerInspect(ctx, id); err == nil && sameRoot(other, upperDir) {
			return other, nil
		}
	}
	if len(joined) > 0 || differentRoot(info, upperDir) {
		return none, fmt.Errorf("container %.12s shares its network with others, and which of them mcp-agents runs in cannot be found: "+
			"name it with --self-container", info.ID)
	}
	return info, nil
}

// joined lists the running containers that use the network of another.
func (e *engine) joined(ctx context.Context, id, name string) ([]string, error) {
	list, err := e.ContainerList(ctx, container.ListOptions{})
	if err != nil {
		return nil, e.failure(fmt.Errorf("find our own container: %w", err))
	}
	var ids []string
	for _, c := range list {
		if mode := c.HostConfig.NetworkMode; mode == "container:"+id || mode == "container:"+name {
			ids = append(ids, c.ID)
		}
	}
	return ids, nil
}

// sameRoot reports whether a container's root is known to be ours. Our own view
// of the path may lack its beginning.
func sameRoot(info container.InspectResponse, upperDir string) bool {
	its := itsUpperDir(info)
	return its != "" && upperDir != "" && strings.HasSuffix(its, upperDir)
}

// differentRoot reports whether a container's root is known not to be ours.
func differentRoot(info container.InspectResponse, upperDir string) bool {
	return itsUpperDir(info) != "" && upperDir != "" && !sameRoot(info, upperDir)
}

func itsUpperDir(info container.InspectResponse) string {
	if info.ContainerJSONBase == nil {
		return ""
	}
	return info.GraphDriver.Data["UpperDir"]
}

// ownMounts are the mounts of our container as the engine tells them. Binds and
// local volumes have a directory on the engine's machine; nothing else has.
func ownMounts(info container.InspectResponse) selfcontainer.Container {
	var own selfcontainer.Container
	if info.ContainerJSONBase == nil {
		return own
	}
	own.ID = info.ID
	for _, m := range info.Mounts {
		out := selfcontainer.Mount{Target: resolved(m.Destination), ReadOnly: !m.RW}
		if m.Type == mount.TypeBind || (m.Type == mount.TypeVolume && (m.Driver == "" || m.Driver == "local")) {
			out.Source = m.Source
		}
		own.Mounts = append(own.Mounts, out)
	}
	if info.HostConfig != nil {
		for target := range info.HostConfig.Tmpfs {
			own.Mounts = append(own.Mounts, selfcontainer.Mount{Target: resolved(target)})
		}
	}
	return own
}

// resolved is where a mount really is: an image may have /var/run as a link.
func resolved(target string) string {
	if real, err := filepath.EvalSymlinks(target); err == nil {
		return real
	}
	return target
}
