package docker

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/system"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox"
)

// socketDir is a directory whose path leaves room for a socket's name.
func socketDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/tmp", "engine")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// stand is what a stand-in for an engine answers.
type stand struct {
	api     string
	info    string
	version string
	images  string // the answer to an image's inspection; empty means there is none
	calls   atomic.Int64
}

func (s *stand) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.calls.Add(1)
	w.Header().Set("Api-Version", s.api)
	w.Header().Set("Content-Type", "application/json")
	body := ""
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/_ping"):
		w.Header().Set("Content-Type", "text/plain")
		body = "OK"
	case strings.HasSuffix(path, "/info"):
		body = s.info
	case strings.HasSuffix(path, "/version"):
		body = s.version
	case strings.Contains(path, "/images/"):
		body = s.images
	}
	if body == "" {
		w.WriteHeader(http.StatusNotFound)
		body = `{"message":"No such thing"}`
	}
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, body)
	}
}

// serveAt serves on a socket until the returned function or the test ends it.
func serveAt(t *testing.T, path string, handler http.Handler) (stop func()) {
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	return serveOn(t, l, handler)
}

func serveOn(t *testing.T, l net.Listener, handler http.Handler) (stop func()) {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Second}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	stop = sync.OnceFunc(func() {
		_ = server.Close()
		serving.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// silentAt accepts connections and never answers.
func silentAt(t *testing.T, path string) (stop func()) {
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
		}
	})
	stop = sync.OnceFunc(func() {
		_ = l.Close()
		accepting.Wait()
	})
	t.Cleanup(stop)
	return stop
}

const image20 = `{"Id":"sha256:1","Config":{"Labels":{"mcp-agents.protocol":"1","mcp-agents.cli.version":"0.153.4"}}}`

// One front end meets every state of an engine in turn, and is never restarted.
func TestEngineProblems(t *testing.T) {
	path := filepath.Join(socketDir(t), "docker.sock")
	t.Setenv("DOCKER_HOST", "unix://"+path)
	rt, err := New("")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	problem := func(want EngineProblem, words string) {
		t.Helper()
		begin := time.Now()
		_, err := rt.Inspect(t.Context(), "image")
		var bad *EngineError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, want, bad.Problem, err)
		require.ErrorContains(t, err, words)
		require.ErrorContains(t, err, "unix://"+path+" (DOCKER_HOST)")
		require.Less(t, time.Since(begin), 1500*time.Millisecond)
	}
	works := func() {
		t.Helper()
		image, err := rt.Inspect(t.Context(), "image")
		require.NoError(t, err)
		require.Equal(t, "0.153.4", image.CLIVersion)
	}
	engine := &stand{api: "1.41", images: image20}

	problem(EngineAbsent, "install and start Docker")
	leaveSocket(t, path)
	problem(EngineRefused, "is not running")
	require.NoError(t, os.Remove(path))
	stop := silentAt(t, path)
	problem(EngineSilent, "does not answer")
	stop()
	stop = serveAt(t, path, engine)
	works()
	stop()
	problem(EngineAbsent, "install and start Docker") // the server removes its socket
	stop = serveAt(t, path, engine)
	works()
	stop()
}

// leaveSocket makes a socket that nothing listens on, as a killed engine does.
func leaveSocket(t *testing.T, path string) {
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
}

// childHost makes TestEngineDenied the child that looks at an engine as
// another user.
const childHost = "MCP_AGENTS_TEST_CHILD_HOST"

func TestEngineDenied(t *testing.T) {
	if host := os.Getenv(childHost); host != "" {
		rt, err := New(host)
		require.NoError(t, err)
		image, err := rt.Inspect(t.Context(), "image")
		problem := EngineProblem(0)
		if bad, ok := errors.AsType[*EngineError](err); ok {
			problem = bad.Problem
		}
		fmt.Printf("child: %d %s %v\n", problem, image.CLIVersion, err)
		return
	}
	dir := socketDir(t)
	path := filepath.Join(dir, "docker.sock")
	serveAt(t, path, &stand{api: "1.41", images: image20})
	look := func() string {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestEngineDenied$", "-test.v")
		cmd.Env, cmd.Dir = []string{childHost + "=unix://" + path}, "/"
		if os.Geteuid() == 0 { // root is denied nothing
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 54321, Gid: 54321}}
		}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	require.NoError(t, os.Chmod(path, 0o000))
	begin := time.Now()
	require.Contains(t, look(), fmt.Sprintf("child: %d  no permission to use the Docker engine at unix://%s", EngineDenied, path))
	require.Less(t, time.Since(begin), 2*time.Second)
	require.NoError(t, os.Chmod(path, 0o666))
	require.Contains(t, look(), "child: 0 0.153.4 <nil>", "the negative control")
	if os.Geteuid() == 0 { // a directory that may not be entered
		require.NoError(t, os.Chmod(dir, 0o700))
		require.Contains(t, look(), fmt.Sprintf("child: %d  no permission", EngineDenied))
	}
}

// What was known of one engine is not believed of the next at its socket.
func TestAnotherEngineAtTheSameSocket(t *testing.T) {
	path := filepath.Join(socketDir(t), "docker.sock")
	rt, err := New("unix://" + path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	old := &stand{api: "1.41", info: infoRootless20, version: version20}
	stop := serveAt(t, path, old)
	about, err := rt.Engine(t.Context())
	require.NoError(t, err)
	require.Equal(t, Engine{Host: "unix://" + path, Found: "--docker_host", Version: "20.10.24", API: "1.41", Rootless: true, Cgroup: "1",
		Seccomp: true, Runtimes: []string{"runc"}}, about)
	before := old.calls.Load()
	_, err = rt.Engine(t.Context())
	require.NoError(t, err)
	require.Equal(t, before+1, old.calls.Load(), "a ping, and nothing asked twice")
	stop()
	serveAt(t, path, &stand{api: "1.52", info: info29, version: version29})
	about, err = rt.Engine(t.Context())
	require.NoError(t, err)
	require.Equal(t, Engine{Host: "unix://" + path, Found: "--docker_host", Version: "29.1.3", API: "1.51", Cgroup: "2",
		Seccomp: true, Runtimes: []string{"runc", "runsc"}, RecursiveReadOnly: true}, about)
}

// Over TCP there is no socket to look at: the negotiated version tells.
func TestAnotherEngineAtTheSameAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	engine := &stand{api: "1.52", info: info29, version: version29}
	serveOn(t, l, engine)
	rt, err := New("tcp://" + l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	about, err := rt.Engine(t.Context())
	require.NoError(t, err)
	require.True(t, about.RecursiveReadOnly)
	engine.api, engine.info, engine.version = "1.41", infoRootless20, version20
	about, err = rt.Engine(t.Context())
	require.NoError(t, err)
	require.Equal(t, "1.41", about.API)
	require.False(t, about.RecursiveReadOnly)
}

const (
	version20      = `{"Version":"20.10.24","ApiVersion":"1.41","MinAPIVersion":"1.12","Components":[{"Name":"Engine","Version":"20.10.24"},{"Name":"runc","Version":"1.1.5"}]}`
	infoRootless20 = `{"CgroupVersion":"1","KernelVersion":"5.10.0","SecurityOptions":["name=seccomp,profile=default","name=rootless"],"Runtimes":{"runc":{"path":"runc"}},"DefaultRuntime":"runc"}`
	version29      = `{"Platform":{"Name":"Docker Engine - Community"},"Version":"29.1.3","ApiVersion":"1.52","MinAPIVersion":"1.44","Components":[{"Name":"Engine","Version":"29.1.3","Details":{"ApiVersion":"1.52"}},{"Name":"containerd","Version":"v2.2.0"}]}`
	info29         = `{"CgroupVersion":"2","KernelVersion":"6.12.5-1-generic","SecurityOptions":["name=seccomp,profile=builtin","name=cgroupns"],"Runtimes":{"runsc":{"path":"runsc"},"runc":{"path":"runc","status":{"org.opencontainers.runtime-spec.features":"{\"mountOptions\":[\"bind\",\"rro\"]}"}}},"DefaultRuntime":"runc"}`
	podman5        = `{"Platform":{"Name":"linux/amd64/debian-13"},"Components":[{"Name":"Podman Engine","Version":"5.4.2","Details":{"APIVersion":"5.4.2","MinAPIVersion":"4.0.0"}},{"Name":"Conmon","Version":"conmon version 2.1.12"},{"Name":"OCI Runtime (crun)","Version":"crun version 1.21"}],"Version":"5.4.2","ApiVersion":"1.41","MinAPIVersion":"1.24"}`
	podman4        = `{"Platform":{"Name":"linux/amd64/fedora-39"},"Components":[{"Name":"Podman Engine","Version":"4.9.4","Details":{"APIVersion":"4.9.4"}}],"Version":"4.9.4","ApiVersion":"1.41","MinAPIVersion":"1.24"}`
	infoPodman     = `{"CgroupVersion":"2","KernelVersion":"6.12.5","SecurityOptions":["name=seccomp,profile=default","name=rootless"],"Runtimes":{"crun":{"path":"/usr/bin/crun"},"runc":{"path":"/usr/bin/runc"}},"DefaultRuntime":"crun"}`
)

func TestDescription(t *testing.T) {
	for _, tt := range []struct {
		name, info, version, api string
		want                     Engine
	}{
		{"docker 29", info29, version29, "1.52", Engine{Version: "29.1.3", API: "1.52", Cgroup: "2", Seccomp: true, Runtimes: []string{"runc", "runsc"}, RecursiveReadOnly: true}},
		{"an old kernel", strings.Replace(info29, "6.12.5", "5.11.0", 1), version29, "1.52",
			Engine{Version: "29.1.3", API: "1.52", Cgroup: "2", Seccomp: true, Runtimes: []string{"runc", "runsc"}}},
		{"a runtime that cannot", strings.Replace(info29, `\"rro\"`, `\"ro\"`, 1), version29, "1.52",
			Engine{Version: "29.1.3", API: "1.52", Cgroup: "2", Seccomp: true, Runtimes: []string{"runc", "runsc"}}},
		{"rootless by its component", `{"KernelVersion":"x"}`, `{"Components":[{"Name":"rootlesskit"}]}`, "1.44", Engine{API: "1.44", Rootless: true}},
		{"podman 5", infoPodman, podman5, "1.41", Engine{Version: "5.4.2", API: "1.41", Podman: true, Rootless: true, Cgroup: "2", Seccomp: true, Runtimes: []string{"crun", "runc"}}},
		{"podman 4", infoPodman, podman4, "1.41", Engine{Version: "4.9.4", API: "1.41", Podman: true, Rootless: true, Cgroup: "2", Seccomp: true, Runtimes: []string{"crun", "runc"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var info system.Info
			var version types.Version
			require.NoError(t, json.Unmarshal([]byte(tt.info), &info))
			require.NoError(t, json.Unmarshal([]byte(tt.version), &version))
			require.Equal(t, tt.want, description(info, version, tt.api))
		})
	}
}

// Podman reads a profile's text as a file's name, and names the machine itself.
func TestFactsOfPodman(t *testing.T) {
	for _, podman := range []bool{false, true} {
		f, err := factsOf(Engine{Podman: podman, Seccomp: true}, sandbox.Spec{Provider: "codex", User: "1:1"})
		require.NoError(t, err)
		_, host := configure(sandbox.Spec{}, f)
		require.Equal(t, podman, f.seccomp == "")
		require.Equal(t, podman, len(host.ExtraHosts) == 0)
		require.Contains(t, host.SecurityOpt, "no-new-privileges")
	}
	f, err := factsOf(Engine{}, sandbox.Spec{Provider: "codex", User: "1:1"})
	require.NoError(t, err)
	require.Empty(t, f.seccomp, "an engine that cannot filter refuses a profile")
}

// The client bounds no attach: it looks at the connection only.
func TestAttachIsBounded(t *testing.T) {
	path := filepath.Join(socketDir(t), "docker.sock")
	silentAt(t, path)
	e, err := dial(endpoint{host: "unix://" + path})
	require.NoError(t, err)
	for _, cancelled := range []bool{false, true} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if cancelled {
			cancel()
		}
		begin := time.Now()
		_, err = e.attach(ctx, "id")
		cancel()
		require.Error(t, err)
		require.ErrorIs(t, err, ctx.Err())
		require.Less(t, time.Since(begin), 2*time.Second)
		_, silent := errors.AsType[*EngineError](e.failure(err))
		require.Equal(t, !cancelled, silent)
	}
}

// echoAttach takes an attach over and echoes.
func echoAttach(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Api-Version", "1.41")
	if !strings.HasSuffix(r.URL.Path, "/attach") {
		_, _ = io.WriteString(w, "OK")
		return
	}
	conn, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
	_, _ = io.Copy(conn, buffered)
}

// The bound is on the attach: the stream lives on when its context ends. TLS
// goes the same way.
func TestAttachOutlivesItsContext(t *testing.T) {
	ca := newPair(t, nil)
	server := newPair(t, &ca)
	cert, err := tls.X509KeyPair([]byte(server.cert), []byte(server.key))
	require.NoError(t, err)
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	secure, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	require.NoError(t, err)
	home := userHome{t, t.TempDir()}
	key := home.context("secure", `{"Endpoints":{"docker":{"Host":"tcp://`+secure.Addr().String()+`"}}}`)
	home.write(".docker/contexts/tls/"+key+"/docker/ca.pem", ca.cert)
	for name, l := range map[string]net.Listener{"tcp": plain, "tls": secure} {
		t.Run(name, func(t *testing.T) {
			serveOn(t, l, http.HandlerFunc(echoAttach))
			at, err := home.finder(map[string]string{"DOCKER_CONTEXT": "secure"}).find(map[string]string{"tcp": "tcp://" + l.Addr().String()}[name])
			require.NoError(t, err)
			e, err := dial(at)
			require.NoError(t, err)
			ours, err := e.probe(t.Context())
			require.NoError(t, err)
			require.True(t, ours)
			ctx, cancel := context.WithCancel(t.Context())
			conn, err := e.attach(ctx, "id")
			require.NoError(t, err)
			defer conn.Close()
			cancel()
			_, err = io.WriteString(conn.Conn, "hello")
			require.NoError(t, err)
			got := make([]byte, 5)
			_, err = io.ReadFull(conn.Reader, got)
			require.NoError(t, err)
			assert.Equal(t, "hello", string(got))
			require.NoError(t, e.Close())
		})
	}
}

// A server whose certificate nobody vouches for is refused.
func TestTLSIsVerified(t *testing.T) {
	stranger, ca := newPair(t, nil), newPair(t, nil)
	server := newPair(t, &stranger)
	cert, err := tls.X509KeyPair([]byte(server.cert), []byte(server.key))
	require.NoError(t, err)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	require.NoError(t, err)
	serveOn(t, l, http.HandlerFunc(echoAttach))
	home := userHome{t, t.TempDir()}
	key := home.context("x", `{"Endpoints":{"docker":{"Host":"tcp://`+l.Addr().String()+`"}}}`)
	home.write(".docker/contexts/tls/"+key+"/docker/ca.pem", ca.cert)
	at, err := home.finder(map[string]string{"DOCKER_CONTEXT": "x"}).find("")
	require.NoError(t, err)
	e, err := dial(at)
	require.NoError(t, err)
	_, err = e.probe(t.Context())
	require.ErrorContains(t, err, "certificate signed by unknown authority")
}
