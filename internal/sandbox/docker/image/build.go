// Package image builds, fetches and lists the images that sandboxes start from,
// with nothing but an engine: what they are built from is inside the program
// (package mcpagents/images).
package image

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"mcpagents/images"
	"mcpagents/internal/sandbox/docker"
)

// LabelInputs is the label that holds the digest of what an image was built from.
const LabelInputs = "mcp-agents.inputs"

// Names are the images that are built and pulled when none is named. That of
// gemini needs an address that its vendor gives, and those of browser are large.
func Names() []string { return []string{"codex", "claude"} }

// Check refuses a name that no image has, before anything is done about another.
func Check(names ...string) error {
	for _, name := range names {
		if _, err := images.Dockerfile(name); err != nil {
			return err
		}
	}
	return nil
}

// Engine is what is asked of the engine.
type Engine interface {
	Arch(ctx context.Context) (string, error)
	Label(ctx context.Context, ref, label string) (string, error)
	BuildImage(ctx context.Context, b docker.Build, progress func(string)) error
	PullImage(ctx context.Context, ref string, progress func(string)) error
	TagImage(ctx context.Context, ref, name string) error
	Inspect(ctx context.Context, ref string) (docker.Image, error)
	Images(ctx context.Context) ([]docker.Held, error)
}

// Request is an image to build.
type Request struct {
	Name  string            // codex, claude, gemini, chrome-devtools or chromium
	Tag   string            // empty: the one that the provider uses
	Args  map[string]string // build arguments
	Force bool              // also when nothing changed
	// Getenv gives the proxies and npm's registry, which the build gets as well.
	Getenv func(string) string
}

// Build builds an image, unless it was built from the same before. Each step is
// told to say as one line.
func Build(ctx context.Context, e Engine, req Request, say func(string)) error {
	dockerfile, err := images.Dockerfile(req.Name)
	if err != nil {
		return err
	}
	arch, err := e.Arch(ctx)
	if err != nil {
		return err
	}
	init, err := images.Init(arch)
	if err != nil {
		return err
	}
	if req.Tag == "" {
		req.Tag = docker.DefaultImage(req.Name)
	}
	args := maps.Clone(req.Args)
	if args == nil {
		args = map[string]string{}
	}
	args["TARGETARCH"] = arch // the classic builder does not set it
	wanted := digest(args, dockerfile, init)
	if has, err := e.Label(ctx, req.Tag, LabelInputs); err != nil {
		return err
	} else if has == wanted && !req.Force {
		say(req.Tag + " is up to date")
		return nil
	}
	b := docker.Build{Tag: req.Tag, Args: args, Labels: map[string]string{"mcp-agents.image": req.Name, LabelInputs: wanted}}
	b.Network = surroundings(args, req.Getenv)
	archive, err := buildContext(dockerfile, images.InitName(arch), init)
	if err != nil {
		return err
	}
	b.Context = bytes.NewReader(archive)
	say("building " + req.Tag)
	begin := time.Now()
	if err := e.BuildImage(ctx, b, func(line string) { say(req.Name + ": " + line) }); err != nil {
		return err
	}
	say(fmt.Sprintf("built %s in %.0f s", req.Tag, time.Since(begin).Seconds()))
	return nil
}

// digest covers what goes into an image, and not the settings of this machine:
// two machines find each other's image up to date.
func digest(args map[string]string, dockerfile, init []byte) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(args)) {
		fmt.Fprintf(h, "%s=%s\x00", name, args[name])
	}
	for _, b := range [][]byte{dockerfile, init} {
		fmt.Fprintf(h, "%d\x00", len(b))
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// surroundings adds what this machine uses to reach the network, and returns
// the network of the build: a proxy on this machine's loopback is reached from
// the host's own only. An engine keeps these arguments out of the image.
func surroundings(args map[string]string, getenv func(string) string) (network string) {
	add := func(arg string, names ...string) {
		for _, name := range names {
			if _, given := args[arg]; given {
				return
			}
			if v := getenv(name); v != "" {
				args[arg] = v
			}
		}
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"} {
		add(name, name)
		if !strings.EqualFold(name, "no_proxy") && onLoopback(args[name]) {
			network = "host"
		}
	}
	add("NPM_CONFIG_REGISTRY", "npm_config_registry", "NPM_CONFIG_REGISTRY")
	return network
}

func onLoopback(proxy string) bool {
	if !strings.Contains(proxy, "://") {
		proxy = "http://" + proxy
	}
	u, err := url.Parse(proxy)
	if err != nil {
		return false
	}
	host := u.Hostname()
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
}

// buildContext is the archive that the engine builds from: the same bytes from
// the same inputs, so that its cache holds.
func buildContext(dockerfile []byte, initName string, init []byte) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range []struct {
		name    string
		mode    int64
		content []byte
	}{{"Dockerfile", 0o644, dockerfile}, {initName, 0o755, init}} {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: time.Unix(0, 0)}); err != nil {
			return nil, fmt.Errorf("make the build's context: %w", err)
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, fmt.Errorf("make the build's context: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("make the build's context: %w", err)
	}
	return b.Bytes(), nil
}
