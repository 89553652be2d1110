package docker

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/testkit/images"
)

// A file system that is mounted below a read-only workspace is not writable
// from inside: an engine before 25 would leave it so.
func TestReadOnlyIsRecursive(t *testing.T) {
	image := images.Codex(t)
	if os.Geteuid() != 0 {
		t.Skip("making a mount needs root")
	}
	ws := socketDir(t)
	nested := filepath.Join(ws, "nested")
	require.NoError(t, os.Mkdir(nested, 0o777))
	require.NoError(t, syscall.Mount("tmpfs", nested, "tmpfs", 0, "size=64k,mode=0777"))
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(nested, 0)) })
	require.NoError(t, os.WriteFile(filepath.Join(nested, "file"), []byte("x"), 0o666))
	require.NoError(t, os.Chmod(ws, 0o777))
	rt, err := New("")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	write := func(readOnly bool) (inWorkspace, inNested bool) {
		spec := sandbox.Spec{Provider: "codex", Image: image, Network: "none", User: "1000:1000",
			Mounts: []sandbox.Mount{{Path: ws, ReadOnly: readOnly}}}
		run := func(dir string) bool {
			_, err := runIn(t, rt, spec, "touch "+dir+"/by-sandbox")
			return err == nil
		}
		return run(ws), run(nested)
	}
	inWorkspace, inNested := write(true)
	require.False(t, inWorkspace)
	require.False(t, inNested)
	inWorkspace, inNested = write(false)
	require.True(t, inWorkspace, "the negative control")
	require.True(t, inNested, "the negative control")
}

var quiet = slog.New(slog.DiscardHandler)

// commandError is the failure of a script in a sandbox.
type commandError struct{ text string }

func (e *commandError) Error() string { return e.text }

// runIn runs a script in a sandbox of its own.
func runIn(t *testing.T, rt *Runtime, spec sandbox.Spec, script string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	box, err := sandbox.Open(ctx, rt, spec, quiet)
	require.NoError(t, err)
	defer func() { require.NoError(t, box.Close(context.WithoutCancel(ctx))) }()
	out, err := box.Run(ctx, sandbox.Command{Argv: []string{"bash", "-c", script}, Env: rt.Environ(spec), Dir: "/"})
	require.NoError(t, err)
	if out.Exit.Code != 0 {
		return string(out.Stdout), &commandError{string(out.Stderr)}
	}
	return string(out.Stdout), nil
}

// The machine has its name on the default bridge and on no network that is not
// its own.
func TestHostName(t *testing.T) {
	image := images.Codex(t)
	rt, err := New("")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	t.Setenv("HTTPS_PROXY", "http://me:secret@localhost:3128")
	t.Setenv("NO_PROXY", "localhost,.corp")
	out, err := runIn(t, rt, sandbox.Spec{Provider: "codex", Image: image, User: "1000:1000"},
		"getent hosts host.docker.internal >&2 && echo $HTTPS_PROXY $NO_PROXY")
	require.NoError(t, err)
	require.Equal(t, "http://me:secret@host.docker.internal:3128 localhost,.corp\n", out)
}

func TestUnknownOCIRuntime(t *testing.T) {
	image := images.Codex(t)
	rt, err := New("")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	_, err = rt.Start(t.Context(), sandbox.Spec{ID: "runtime-is-missing", Provider: "codex", Image: image, Network: "none", User: "1000:1000", OCIRuntime: "no-such-runtime"})
	require.ErrorContains(t, err, `the engine has no OCI runtime "no-such-runtime" (it has `)
	require.ErrorContains(t, err, "runc")
	require.ErrorContains(t, err, "--oci_runtime")
	lines, err := rt.List(t.Context())
	require.NoError(t, err)
	for _, l := range lines {
		require.NotEqual(t, "runtime-is-missing", l.Sandbox)
	}
}

func TestFromRegistry(t *testing.T) {
	for ref, want := range map[string]bool{
		"mcp-agents/codex:0.1.0": false, "codex": false, "codex:1.0": false, "me/codex:1": false, DefaultImage("codex"): false,
		"ghcr.io/me/codex": true, "localhost:5000/codex": true, "localhost/codex": true, "registry:5000/a/b@sha256:0": true,
	} {
		require.Equal(t, want, fromRegistry(ref), ref)
	}
}

// registry is a stand-in for an engine that has no image until it was pulled.
type registry struct {
	began   chan struct{} // one for each pull
	proceed chan struct{} // lets a pull end
	failure string
	pulled  chan struct{} // closed once
}

func (g *registry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Api-Version", "1.41")
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(r.URL.Path, "/_ping"):
	case strings.HasSuffix(r.URL.Path, "/images/create"):
		g.began <- struct{}{}
		out := json.NewEncoder(w)
		_ = out.Encode(map[string]any{"status": "Downloading", "id": "a", "progressDetail": map[string]int{"current": 12e6, "total": 48e6}})
		w.(http.Flusher).Flush()
		select {
		case <-g.proceed:
		case <-r.Context().Done():
			return
		}
		if g.failure != "" {
			_ = out.Encode(map[string]string{"error": g.failure})
			return
		}
		close(g.pulled)
	default:
		select {
		case <-g.pulled:
			_, _ = io.WriteString(w, image20)
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"message":"No such image"}`)
		}
	}
}

func newRegistry(t *testing.T) (*registry, *Runtime) {
	g := &registry{began: make(chan struct{}, 9), proceed: make(chan struct{}), pulled: make(chan struct{})}
	path := filepath.Join(socketDir(t), "docker.sock")
	serveAt(t, path, g)
	rt, err := New("unix://" + path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	return g, rt
}

const remote = "ghcr.io/me/codex:1"

// Calls share one pull, and one that gives up does not end it.
func TestPull(t *testing.T) {
	g, rt := newRegistry(t)
	first, cancel := context.WithCancel(t.Context())
	answers := make(chan error, 2)
	go func() { _, err := rt.Inspect(first, remote); answers <- err }()
	<-g.began
	short, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	_, err := rt.Inspect(short, remote)
	require.ErrorContains(t, err, "is being pulled (12MB of 48MB): call again")
	cancel()
	require.ErrorIs(t, <-answers, context.Canceled)
	go func() { _, err := rt.Inspect(t.Context(), remote); answers <- err }()
	close(g.proceed)
	require.NoError(t, <-answers)
	require.Empty(t, g.began, "one pull only")
}

func TestPullFails(t *testing.T) {
	g, rt := newRegistry(t)
	g.failure = "toomanyrequests"
	close(g.proceed)
	for range 2 { // each call tries again
		_, err := rt.Inspect(t.Context(), remote)
		var bad *ImageError
		require.ErrorAs(t, err, &bad)
		require.ErrorContains(t, err, "toomanyrequests")
		require.ErrorContains(t, err, "docker pull "+remote)
	}
	require.Len(t, g.began, 2)
}

// Nobody but us has our images: they are not asked for anywhere.
func TestOwnImageIsNotPulled(t *testing.T) {
	g, rt := newRegistry(t)
	_, err := rt.Inspect(t.Context(), DefaultImage("codex"))
	require.ErrorContains(t, err, "build it with `mcp-agents images build codex`")
	require.Empty(t, g.began)
}

// A pull ends with the runtime.
func TestCloseEndsPulls(t *testing.T) {
	g, rt := newRegistry(t)
	answer := make(chan error, 1)
	go func() { _, err := rt.Inspect(t.Context(), remote); answer <- err }()
	<-g.began
	require.NoError(t, rt.Close())
	require.Error(t, <-answer)
}
