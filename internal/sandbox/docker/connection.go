package docker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/versions"
	"github.com/docker/docker/client"
)

// probeTimeout bounds the look at whether the engine answers at all, which
// comes before anything that may take longer.
const probeTimeout = time.Second

// engine is a connection to one engine and what is known of that engine. It is
// given up when a call finds nobody there, or somebody else.
type engine struct {
	*client.Client
	at     endpoint
	socket os.FileInfo // of a unix socket when we came; nil when it was not there
	lost   atomic.Bool // the next call finds the engine anew

	mu     sync.Mutex
	api    string // as its first ping said
	pinged bool

	asking chan struct{} // holds a value while somebody asks
	known  *Engine
}

// Engine is what an engine says of itself.
type Engine struct {
	Host     string   // its address
	Found    string   // how the address was found
	Version  string   // of its software
	API      string   // the version of the API that is spoken
	Podman   bool     // Podman behind Docker's API
	Rootless bool     // its root is an ordinary user outside
	Cgroup   string   // 1 or 2
	Seccomp  bool     // it can filter system calls
	Runtimes []string // OCI runtimes by name
	// RecursiveReadOnly says that a read-only mount can cover the mounts below
	// it: an engine from 25 on, on Linux from 5.12 on.
	RecursiveReadOnly bool
}

// dial makes the client for an endpoint, without contacting it.
func dial(at endpoint) (*engine, error) {
	transport := &http.Transport{}
	bounded := func(*client.Client) error {
		transport.DialContext = boundDial(transport.DialContext, at)
		return nil
	}
	options := []client.Opt{
		client.WithHTTPClient(&http.Client{Transport: transport, CheckRedirect: client.CheckRedirect}),
		client.WithHost(at.host), bounded, client.WithAPIVersionNegotiation(), client.WithVersionFromEnv(),
	}
	if at.tls != nil {
		transport.Proxy = nil // the dialer speaks TLS itself
	}
	c, err := client.NewClientWithOpts(options...)
	if err != nil {
		return nil, &EndpointError{How: at.how, Text: "the address cannot be used", Cause: err}
	}
	return &engine{Client: c, at: at, socket: at.socketInfo(), asking: make(chan struct{}, 1)}, nil
}

type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// attachKey marks the context of an attach; its value is a *attachment.
type attachKey struct{}

// attachment lets the context end an attach that the engine does not answer:
// the client takes the connection over and looks at no context after that.
type attachment struct{ release func() bool }

// boundDial adds TLS to an endpoint's dialer, and the bound to attaches. TLS
// is made here because the client would dial an attach by itself otherwise,
// without a bound.
func boundDial(base dialFunc, at endpoint) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := base(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if at.tls != nil {
			config := at.tls.Clone()
			config.ServerName = at.serverName()
			secure := tls.Client(conn, config)
			if err := secure.HandshakeContext(ctx); err != nil {
				_ = conn.Close()
				return nil, &EndpointError{How: at.how, Text: "TLS with the engine at " + at.host + " fails", Cause: err}
			}
			conn = secure
		}
		if a, ok := ctx.Value(attachKey{}).(*attachment); ok {
			a.release = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
		}
		return conn, nil
	}
}

// attach attaches to a container. The context bounds the attach, not the
// stream.
func (e *engine) attach(ctx context.Context, id string) (types.HijackedResponse, error) {
	var a attachment
	bound := context.WithValue(ctx, attachKey{}, &a)
	conn, err := e.ContainerAttach(bound, id, container.AttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	late := a.release != nil && !a.release() // its deadline has cut the connection
	switch {
	case err == nil && !late:
		return conn, nil
	case err == nil:
		conn.Close()
		err = context.Cause(ctx)
	case late:
		err = errors.Join(context.Cause(ctx), err)
	}
	return types.HijackedResponse{}, err
}

// socketInfo identifies the socket that an engine listens on.
func (e endpoint) socketInfo() os.FileInfo {
	path, ok := strings.CutPrefix(e.host, "unix://")
	if !ok {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return info
}

// stale reports that the engine's socket is not the one that we know.
func (e *engine) stale() bool {
	if e.lost.Load() {
		return true
	}
	now := e.at.socketInfo()
	if now == nil || e.socket == nil {
		return (now == nil) != (e.socket == nil)
	}
	return !os.SameFile(now, e.socket) || !now.ModTime().Equal(e.socket.ModTime())
}

// connect returns a connection to an engine that has just answered, within a
// second or so.
func (r *Runtime) connect(ctx context.Context) (*engine, error) {
	for fresh := false; ; fresh = true {
		e, err := r.current()
		if err != nil {
			return nil, err
		}
		ours, err := e.probe(ctx)
		if err != nil {
			return nil, err
		}
		if ours || fresh {
			return e, nil
		}
		e.lost.Store(true) // another engine answers there now
	}
}

// current is the connection in use, or one made anew.
func (r *Runtime) current() (*engine, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live != nil && !r.live.stale() {
		return r.live, nil
	}
	if r.live != nil {
		_ = r.live.Close()
		r.live = nil
	}
	at, err := r.finder.find(r.host)
	if err != nil {
		return nil, err
	}
	r.live, err = dial(at)
	return r.live, err
}

// probe asks for a sign of life and negotiates the API with the first one. It
// reports whether the engine is the one that we know. An answer other than the
// expected one is a sign of life too: a proxy may forbid the question.
func (e *engine) probe(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	ping, err := e.Ping(ctx)
	if err != nil {
		if err = e.failure(err); e.lost.Load() || ctx.Err() != nil {
			return false, err
		}
		return true, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.pinged {
		e.NegotiateAPIVersionPing(ping)
		e.api, e.pinged = ping.APIVersion, true
	}
	return e.api == ping.APIVersion, nil
}

// failure explains the error of a call, and gives the connection up when
// nobody answered.
func (e *engine) failure(err error) error {
	if bad, ok := errors.AsType[*EndpointError](err); ok && !errors.Is(err, context.DeadlineExceeded) {
		e.lost.Store(true)
		return bad
	}
	err = engineError(redacted(e.at.host), err)
	if problem, ok := errors.AsType[*EngineError](err); ok {
		problem.Found = e.at.how
		e.lost.Store(true)
	}
	return err
}

// Engine asks the engine what it is. The answer is kept for as long as the
// connection.
func (r *Runtime) Engine(ctx context.Context) (Engine, error) {
	e, err := r.connect(ctx)
	if err != nil {
		return Engine{}, err
	}
	return e.describe(ctx)
}

// describe asks once: who comes meanwhile waits for that answer.
func (e *engine) describe(ctx context.Context) (Engine, error) {
	select {
	case e.asking <- struct{}{}:
		defer func() { <-e.asking }()
	case <-ctx.Done():
		return Engine{}, context.Cause(ctx)
	}
	if e.known != nil {
		return *e.known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var version types.Version
	var versionErr error
	var asking sync.WaitGroup
	asking.Go(func() { version, versionErr = e.ServerVersion(ctx) })
	info, err := e.Info(ctx)
	asking.Wait()
	if err != nil {
		return Engine{}, e.failure(fmt.Errorf("ask the engine what it is: %w", err))
	}
	if versionErr != nil {
		return Engine{}, e.failure(fmt.Errorf("ask the engine for its version: %w", versionErr))
	}
	d := description(info, version, e.ClientVersion())
	d.Host, d.Found = redacted(e.at.host), e.at.how
	e.known = &d
	return d, nil
}

// description reads what an engine says, of Docker or of Podman.
func description(info system.Info, version types.Version, api string) Engine {
	d := Engine{Version: version.Version, API: api, Cgroup: info.CgroupVersion}
	for _, c := range version.Components {
		d.Podman = d.Podman || strings.Contains(strings.ToLower(c.Name), "podman")
		d.Rootless = d.Rootless || c.Name == "rootlesskit"
	}
	for _, o := range info.SecurityOptions {
		d.Rootless = d.Rootless || strings.Contains(o, "name=rootless")
		d.Seccomp = d.Seccomp || strings.HasPrefix(o, "name=seccomp") || o == "seccomp"
	}
	readOnly := true // where the runtimes do not say
	for name, rt := range info.Runtimes {
		d.Runtimes = append(d.Runtimes, name)
		if features := rt.Status["org.opencontainers.runtime-spec.features"]; name == info.DefaultRuntime && features != "" {
			readOnly = strings.Contains(features, `"rro"`)
		}
	}
	slices.Sort(d.Runtimes)
	d.RecursiveReadOnly = readOnly && !d.Podman && versions.GreaterThanOrEqualTo(api, "1.44") && kernelAtLeast(info.KernelVersion, 5, 12)
	return d
}

// kernelAtLeast compares the first two numbers of a kernel's version, such as
// 6.1.0-18-amd64. One that cannot be read is old.
func kernelAtLeast(version string, major, minor int) bool {
	var a, b int
	if n, _ := fmt.Sscanf(version, "%d.%d", &a, &b); n != 2 {
		return false
	}
	return a > major || (a == major && b >= minor)
}

// Sockets are the paths of engine sockets on this machine, which no sandbox
// should be given: the usual ones, and that of the engine in use.
func (r *Runtime) Sockets() []string {
	paths := []string{"/run/docker.sock"}
	for _, s := range r.finder.sockets() {
		paths = append(paths, s.path)
	}
	if at, err := r.finder.find(r.host); err == nil {
		if path, ok := strings.CutPrefix(at.host, "unix://"); ok {
			paths = append(paths, path)
		}
	}
	return paths
}
