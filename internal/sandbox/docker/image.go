package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
)

// buildTail is how many of the last lines of a failed build are told.
const buildTail = 25

// Build is an image to build.
type Build struct {
	Tag     string
	Context io.Reader // a tar archive with a Dockerfile at its top
	Args    map[string]string
	Labels  map[string]string
	Network string // of the build's commands; empty means the engine's default
}

// BuildError is a build that the engine began and that failed.
type BuildError struct {
	Tag, Text string
	Tail      []string // the last lines that it printed
}

func (e *BuildError) Error() string {
	text := fmt.Sprintf("build image %s: %s", e.Tag, e.Text)
	if len(e.Tail) > 0 {
		text += "; its last lines:\n  " + strings.Join(e.Tail, "\n  ")
	}
	return text
}

// Arch is the architecture of the engine's machine as Go names it.
func (r *Runtime) Arch(ctx context.Context) (string, error) {
	e, err := r.connect(ctx)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	v, err := e.ServerVersion(ctx)
	if err != nil {
		return "", e.failure(fmt.Errorf("ask the engine for its architecture: %w", err))
	}
	return v.Arch, nil
}

// BuildImage has the engine build an image with its classic builder, which
// every engine has. Each step is told to progress as one line. Only the context
// bounds it, and its end ends the build.
func (r *Runtime) BuildImage(ctx context.Context, b Build, progress func(string)) error {
	e, err := r.connect(ctx)
	if err != nil {
		return err
	}
	args := make(map[string]*string, len(b.Args))
	for k, v := range b.Args {
		args[k] = &v
	}
	answer, err := e.ImageBuild(ctx, b.Context, build.ImageBuildOptions{Tags: []string{b.Tag}, BuildArgs: args, Labels: b.Labels,
		NetworkMode: b.Network, Remove: true, ForceRemove: true, Version: build.BuilderV1})
	if err != nil {
		return e.failure(fmt.Errorf("build image %s: %w", b.Tag, err))
	}
	defer answer.Body.Close()
	tail, err := followBuild(answer.Body, progress)
	if fault, ok := errors.AsType[*BuildError](err); ok {
		fault.Tag, fault.Tail = b.Tag, tail
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("build image %s: %w", b.Tag, context.Cause(ctx))
	}
	return err
}

// followBuild reads an engine's messages about a build to their end and returns
// the last lines of output.
func followBuild(r io.Reader, progress func(string)) (tail []string, err error) {
	for decoder := json.NewDecoder(r); ; {
		var m struct {
			Stream string `json:"stream"`
			Status string `json:"status"`
			Error  string `json:"error"`
		}
		err := decoder.Decode(&m)
		switch {
		case errors.Is(err, io.EOF):
			return tail, nil
		case err != nil:
			return tail, fmt.Errorf("read the progress of the build: %w", err)
		case m.Error != "":
			return tail, &BuildError{Text: m.Error}
		case strings.HasPrefix(m.Status, "Pulling from"):
			progress(strings.ToLower(m.Status[:1]) + m.Status[1:])
		}
		if step, ok := strings.CutPrefix(m.Stream, "Step "); ok {
			step, _, _ = strings.Cut(step, "\n")
			progress(strings.Join(strings.Fields(step), " "))
		}
		for line := range strings.Lines(m.Stream) {
			line = strings.TrimRight(line, "\r\n")
			// Of the builder's own lines the steps were told already.
			if line != "" && !strings.HasPrefix(line, "Step ") && !strings.HasPrefix(line, " ---> ") {
				tail = append(tail, line)
			}
		}
		tail = tail[max(0, len(tail)-buildTail):]
	}
}

// PullImage pulls an image, and tells its progress now and then as one line.
// Only the context bounds it.
func (r *Runtime) PullImage(ctx context.Context, ref string, progress func(string)) error {
	e, err := r.connect(ctx)
	if err != nil {
		return err
	}
	p := &pull{state: "starting", report: progress}
	if err := p.run(ctx, e, ref); err != nil {
		return &ImageError{Ref: ref, Text: fmt.Sprintf("could not be pulled (%v): if its registry wants a login, use `docker pull %s` and `docker tag`", err, ref)}
	}
	return nil
}

// TagImage gives an image another name.
func (r *Runtime) TagImage(ctx context.Context, ref, name string) error {
	e, err := r.connect(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := e.ImageTag(ctx, ref, name); err != nil {
		return e.failure(fmt.Errorf("name image %s %s: %w", ref, name, err))
	}
	return nil
}

// Label is one label of an image; empty when there is no such image or label.
func (r *Runtime) Label(ctx context.Context, ref, label string) (string, error) {
	e, err := r.connect(ctx)
	if err != nil {
		return "", err
	}
	info, err := e.inspectImage(ctx, ref)
	if errdefs.IsNotFound(err) {
		return "", nil
	}
	if err != nil || info.Config == nil {
		return "", e.failure(err)
	}
	return info.Config.Labels[label], nil
}

// Held is an image of ours that an engine holds.
type Held struct {
	Ref      string // one of its names
	Size     int64  // bytes
	Created  time.Time
	CLI      string // what is in it
	Version  string // of the CLI
	Protocol string // of its sandbox-init
	Problem  error  // why it cannot be used; nil when it can
}

// Images lists the images that hold a sandbox-init, one entry for each name.
func (r *Runtime) Images(ctx context.Context) ([]Held, error) {
	e, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := e.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(filters.Arg("label", LabelProtocol))})
	if err != nil {
		return nil, e.failure(fmt.Errorf("list images: %w", err))
	}
	var out []Held
	for _, one := range list {
		for _, ref := range one.RepoTags {
			if strings.Contains(ref, "<none>") {
				continue
			}
			out = append(out, Held{Ref: ref, Size: one.Size, Created: time.Unix(one.Created, 0), CLI: one.Labels["mcp-agents.cli"],
				Version: one.Labels[LabelCLI], Protocol: one.Labels[LabelProtocol], Problem: protocolProblem(ref, one.Labels[LabelProtocol])})
		}
	}
	return out, nil
}
