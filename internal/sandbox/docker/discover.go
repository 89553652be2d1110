package docker

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/docker/docker/client"
)

// endpoint is the address of an engine and how it was found.
type endpoint struct {
	host string      // unix:///var/run/docker.sock, tcp://host:2376 …
	how  string      // DOCKER_HOST, context colima …; for errors
	tls  *tls.Config // nil without TLS
}

// EndpointError says that what names the engine cannot be used. It is found
// before anything is contacted.
type EndpointError struct {
	How   string // what named it, such as DOCKER_CONTEXT
	Text  string
	Cause error
}

func (e *EndpointError) Error() string {
	text := fmt.Sprintf("find the container engine (%s): %s", e.How, e.Text)
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

func (e *EndpointError) Unwrap() error { return e.Cause }

// finder finds the engine as the docker command does, and then where that
// command would need a context: a rootless engine, the virtual machines of a
// desktop, Podman.
type finder struct {
	getenv func(string) string
	home   string // the user's; empty where there is none
	uid    int    // negative on a system without uids
	exists func(path string) bool
}

// newFinder looks at this process. A client that starts its servers with an
// empty environment leaves no HOME, and the user still has a home directory.
func newFinder() finder {
	f := finder{getenv: os.Getenv, uid: os.Getuid(), exists: func(path string) bool {
		_, err := os.Stat(path)
		return !errors.Is(err, fs.ErrNotExist) // one that cannot be looked at is there: its error says so
	}}
	home, err := os.UserHomeDir()
	if err != nil {
		if u, lookupErr := user.Current(); lookupErr == nil {
			home = u.HomeDir
		}
	}
	f.home = home
	return f
}

// find returns the engine's endpoint: flag, when it is not empty, then
// DOCKER_HOST, DOCKER_CONTEXT, the current context of the docker command's
// configuration, the default socket, and other sockets that exist.
func (f finder) find(flag string) (endpoint, error) {
	if flag != "" {
		return f.fromHost(flag, "--docker_host")
	}
	if host := f.getenv(client.EnvOverrideHost); host != "" {
		return f.fromHost(host, client.EnvOverrideHost)
	}
	if name := f.getenv("DOCKER_CONTEXT"); name != "" {
		return f.fromContext(name, "DOCKER_CONTEXT")
	}
	name, how, err := f.currentContext()
	if err != nil {
		return endpoint{}, err
	}
	if name != "" {
		return f.fromContext(name, how)
	}
	return f.fromSockets()
}

// fromHost is an address that somebody named, with TLS as the environment says.
func (f finder) fromHost(host, how string) (endpoint, error) {
	e := endpoint{host: host, how: how}
	if err := e.check(); err != nil {
		return endpoint{}, err
	}
	dir, verify := f.getenv(client.EnvOverrideCertPath), f.getenv(client.EnvTLSVerify) != ""
	if !strings.HasPrefix(host, "tcp://") || (dir == "" && !verify) {
		return e, nil
	}
	if dir == "" {
		dir = f.configDir()
	}
	var err error
	if e.tls, err = tlsFiles(dir, !verify); err != nil {
		return endpoint{}, &EndpointError{How: how, Cause: err,
			Text: "TLS files that " + client.EnvOverrideCertPath + " or " + client.EnvTLSVerify + " asks for cannot be used"}
	}
	return e, nil
}

// check refuses addresses that cannot work, with what to do instead.
func (e endpoint) check() error {
	scheme, rest, _ := strings.Cut(e.host, "://")
	switch {
	case scheme == "ssh":
		return &EndpointError{How: e.how, Text: "an ssh:// address is not supported, and an engine on another machine does not see " +
			"this one's workspaces: run mcp-agents on that machine, or forward its socket " +
			"(ssh -nNT -L /tmp/engine.sock:/var/run/docker.sock HOST) and name unix:///tmp/engine.sock in " + client.EnvOverrideHost}
	case rest == "", scheme != "unix" && scheme != "tcp" && scheme != "npipe":
		return &EndpointError{How: e.how, Text: fmt.Sprintf("%q is not an engine's address such as unix:///var/run/docker.sock or tcp://host:2376",
			redacted(e.host))}
	}
	if _, err := client.ParseHostURL(e.host); err != nil {
		return &EndpointError{How: e.how, Text: "the address cannot be parsed", Cause: err}
	}
	return nil
}

// redacted is an address without a password.
func redacted(host string) string {
	if u, err := url.Parse(host); err == nil {
		return u.Redacted()
	}
	if head, tail, ok := strings.Cut(host, "@"); ok && head != "" {
		return "…@" + tail
	}
	return host
}

// fromSockets is the default socket, or the first of the others that is there.
func (f finder) fromSockets() (endpoint, error) {
	standard := endpoint{host: client.DefaultDockerHost, how: "the default address"}
	if runtime.GOOS == "windows" {
		return standard, nil
	}
	for _, s := range f.sockets() {
		if f.exists(s.path) {
			return endpoint{host: "unix://" + s.path, how: s.how}, nil
		}
	}
	return standard, nil
}

type socket struct{ path, how string }

// sockets are where engines listen, in the order in which they are tried.
func (f finder) sockets() []socket {
	list := []socket{{strings.TrimPrefix(client.DefaultDockerHost, "unix://"), "the default socket"}}
	var run []string
	if dir := f.getenv("XDG_RUNTIME_DIR"); dir != "" {
		run = append(run, dir)
	}
	if f.uid >= 0 {
		run = append(run, "/run/user/"+strconv.Itoa(f.uid))
	}
	for _, dir := range run {
		list = append(list, socket{filepath.Join(dir, "docker.sock"), "a rootless engine's socket"})
	}
	if f.home != "" {
		for _, s := range []socket{{".docker/run/docker.sock", "Docker Desktop's socket"}, {".docker/desktop/docker.sock", "Docker Desktop's socket"},
			{".colima/default/docker.sock", "Colima's socket"}, {".rd/docker.sock", "Rancher Desktop's socket"}} {
			list = append(list, socket{filepath.Join(f.home, s.path), s.how})
		}
	}
	for _, dir := range run {
		list = append(list, socket{filepath.Join(dir, "podman", "podman.sock"), "Podman's socket"})
	}
	return append(list, socket{"/run/podman/podman.sock", "Podman's socket"})
}

// serverName is the name that an engine's certificate must bear.
func (e endpoint) serverName() string {
	_, addr, _ := strings.Cut(e.host, "://")
	addr, _, _ = strings.Cut(addr, "/")
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return host
	}
	return addr
}
