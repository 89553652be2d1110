package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/images"
	"mcpagents/internal/sandbox/docker"
	"mcpagents/internal/version"
)

// fake is an engine that notes what it is asked.
type fake struct {
	arch   string
	labels map[string]string // of every image
	built  []docker.Build
	held   []docker.Held
	named  []string
	bad    error // of Inspect
}

func (f *fake) Arch(context.Context) (string, error) { return f.arch, nil }
func (f *fake) Label(_ context.Context, _, label string) (string, error) {
	return f.labels[label], nil
}
func (f *fake) BuildImage(_ context.Context, b docker.Build, progress func(string)) error {
	progress("1/2 : FROM x")
	f.built, f.labels = append(f.built, b), b.Labels
	return nil
}
func (f *fake) PullImage(_ context.Context, ref string, _ func(string)) error {
	if strings.Contains(ref, "missing") {
		return errors.New("no such image")
	}
	return nil
}
func (f *fake) TagImage(_ context.Context, ref, name string) error {
	f.named = append(f.named, ref+" "+name)
	return nil
}
func (f *fake) Inspect(context.Context, string) (docker.Image, error) { return docker.Image{}, f.bad }
func (f *fake) Images(context.Context) ([]docker.Held, error)         { return f.held, nil }

// embedded reports whether this build has the inits; a plain go test has none, and
// then the error is what is tested.
func embedded(t *testing.T) bool {
	_, err := images.Init("amd64")
	if err != nil {
		require.ErrorIs(t, err, images.ErrNoInit)
		require.ErrorContains(t, err, "make build")
	}
	return err == nil
}

func TestBuild(t *testing.T) {
	f := &fake{arch: "amd64"}
	var said []string
	say := func(line string) { said = append(said, line) }
	env := map[string]string{"HTTPS_PROXY": "http://user:secret@127.0.0.1:3128", "npm_config_registry": "https://npm.example/"}
	req := Request{Name: "codex", Args: map[string]string{"BASE": "debian:x"}, Getenv: func(n string) string { return env[n] }}
	err := Build(t.Context(), f, req, say)
	if !embedded(t) {
		require.ErrorIs(t, err, images.ErrNoInit)
		assert.Empty(t, f.built)
		return
	}
	require.NoError(t, err)
	require.Len(t, f.built, 1)
	b := f.built[0]
	assert.Equal(t, "mcp-agents/codex:"+version.Version, b.Tag)
	assert.Equal(t, map[string]string{"BASE": "debian:x", "TARGETARCH": "amd64", "HTTPS_PROXY": env["HTTPS_PROXY"],
		"NPM_CONFIG_REGISTRY": "https://npm.example/"}, b.Args)
	assert.Equal(t, "host", b.Network, "only the host's network reaches a proxy on its loopback")
	assert.Equal(t, []string{"building " + b.Tag, "codex: 1/2 : FROM x"}, said[:2])
	assert.NotContains(t, strings.Join(said, "\n"), "secret")
	assert.Equal(t, map[string]string{"BASE": "debian:x"}, req.Args, "the caller's own stay")

	// The same inputs on a machine with other proxies: nothing to do.
	req.Getenv = func(string) string { return "" }
	require.NoError(t, Build(t.Context(), f, req, say))
	assert.Len(t, f.built, 1)
	assert.Equal(t, b.Tag+" is up to date", said[len(said)-1])
	for name, change := range map[string]func(*Request){
		"a base":  func(r *Request) { r.Args = map[string]string{"BASE": "debian:y"} },
		"another": func(r *Request) { r.Name = "claude" },
		"force":   func(r *Request) { r.Force = true },
	} {
		one, before := req, len(f.built)
		change(&one)
		require.NoError(t, Build(t.Context(), f, one, say))
		assert.Len(t, f.built, before+1, name)
	}
	f.arch = "riscv64"
	assert.ErrorContains(t, Build(t.Context(), f, req, say), "riscv64")
}

func TestBuildOfNoImage(t *testing.T) {
	err := Build(t.Context(), &fake{arch: "amd64"}, Request{Name: "../x"}, func(string) {})
	assert.EqualError(t, err, `no image is called "../x": use codex, claude, gemini, chrome-devtools or chromium`)
}

// Every Dockerfile finds its init in the context, and the context is the same
// bytes each time.
func TestContext(t *testing.T) {
	for _, name := range []string{"codex", "claude", "gemini"} {
		dockerfile, err := images.Dockerfile(name)
		require.NoError(t, err)
		assert.Contains(t, string(dockerfile), "COPY bin/sandbox-init-linux-* /init/", name)
		one, err := buildContext(dockerfile, images.InitName("arm64"), []byte("init"))
		require.NoError(t, err)
		two, err := buildContext(dockerfile, images.InitName("arm64"), []byte("init"))
		require.NoError(t, err)
		assert.Equal(t, one, two)
		files := map[string]int64{}
		for r := tar.NewReader(bytes.NewReader(one)); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			files[h.Name] = h.Mode
		}
		assert.Equal(t, map[string]int64{"Dockerfile": 0o644, "bin/sandbox-init-linux-arm64": 0o755}, files)
	}
}

func TestOnLoopback(t *testing.T) {
	for proxy, want := range map[string]bool{"": false, "http://127.0.0.1:1": true, "localhost:3128": true, "http://[::1]:8": true,
		"http://u:p@127.5.0.1": true, "http://proxy.example:1": false, "http://localhost.example": false, "::": false} {
		assert.Equal(t, want, onLoopback(proxy), proxy)
	}
}

func TestPull(t *testing.T) {
	f := &fake{}
	require.NoError(t, Pull(t.Context(), f, "codex", "r.example/team/", func(string) {}))
	assert.Equal(t, []string{"r.example/team/codex:" + version.Version + " " + docker.DefaultImage("codex")}, f.named)
	f.bad = errors.New("another protocol")
	require.ErrorIs(t, Pull(t.Context(), f, "claude", "r.example", func(string) {}), f.bad)
	require.Error(t, Pull(t.Context(), f, "claude", "missing.example", func(string) {}))
	assert.Len(t, f.named, 1, "what cannot be used gets no name of ours")
}

func TestList(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	f := &fake{held: []docker.Held{
		{Ref: docker.DefaultImage("codex"), Size: 555_000_000, Created: now.Add(-2 * time.Hour), CLI: "codex", Version: "0.153.4", Protocol: "1"},
		{Ref: "a/old:1", Size: 1e6, Created: now.Add(-72 * time.Hour), CLI: "codex", Version: "1", Protocol: "0",
			Problem: &docker.ImageError{Ref: "a/old:1", Text: "is old"}},
	}}
	var out bytes.Buffer
	ok, err := List(t.Context(), f, &out, now)
	require.NoError(t, err)
	assert.False(t, ok, "claude is missing")
	var rows []string
	for line := range strings.Lines(out.String()) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	assert.Equal(t, []string{"IMAGE CLI PROTOCOL SIZE AGE STATE", "a/old:1 codex 1 0 1MB 3 days is old",
		docker.DefaultImage("codex") + " codex 0.153.4 1 555MB 2 hours ok",
		docker.DefaultImage("claude") + " missing: mcp-agents images build claude"}, rows)
	f.held = append(f.held, docker.Held{Ref: docker.DefaultImage("claude"), CLI: "claude"})
	ok, err = List(t.Context(), f, &out, now)
	require.NoError(t, err)
	assert.True(t, ok, "an old image under another name is nobody's trouble")

	// Labels are anybody's: they make no row and reach no terminal.
	const evil = "x\na/forged:1\tcodex\x1b[2J"
	f.held = append(f.held, docker.Held{Ref: "a/evil:1", CLI: evil, Version: evil, Protocol: evil, Problem: &docker.ImageError{Ref: "a/evil:1", Text: evil}})
	out.Reset()
	_, err = List(t.Context(), f, &out, now)
	require.NoError(t, err)
	assert.Equal(t, 5, strings.Count(out.String(), "\n"), out.String())
	assert.NotContains(t, out.String(), "\x1b")
}
