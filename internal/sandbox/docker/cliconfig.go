package docker

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/configfile"
	clicontext "github.com/docker/cli/cli/context"
	"github.com/docker/cli/cli/context/docker"
	"github.com/docker/cli/cli/context/store"
	"github.com/docker/docker/client"
)

// configDir is the directory of the docker command's configuration, empty
// without a home.
func (f finder) configDir() string {
	if dir := f.getenv(config.EnvOverrideConfigDir); dir != "" {
		return dir
	}
	if f.home == "" {
		return ""
	}
	return filepath.Join(f.home, ".docker")
}

// cliConfig reads the docker command's configuration. A missing file is an
// empty configuration.
func (f finder) cliConfig() (*configfile.ConfigFile, error) {
	dir := f.configDir()
	if dir == "" {
		return configfile.New(""), nil
	}
	return config.Load(dir)
}

// currentContext returns the context that the docker command's configuration
// names, empty for none, which is usual.
func (f finder) currentContext() (name, how string, err error) {
	file, err := f.cliConfig()
	if err != nil && !loginOnly(err) {
		return "", "", &EndpointError{How: "the docker command's configuration", Cause: err,
			Text: "repair that file, or name the engine's address in " + client.EnvOverrideHost}
	}
	return file.CurrentContext, "the current context", nil
}

// loginOnly reports whether all that is wrong with the configuration is a login
// that cannot be decoded: a pull needs it, the engine's address does not.
func loginOnly(err error) bool {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var path *fs.PathError
	return !errors.As(err, &syntax) && !errors.As(err, &kind) && !errors.As(err, &path) && !errors.Is(err, io.ErrUnexpectedEOF)
}

// fromContext looks up a context in the docker command's store.
func (f finder) fromContext(name, how string) (endpoint, error) {
	if name == "default" { // not in the store: what is found without a context
		return f.fromSockets()
	}
	dir := filepath.Join(f.configDir(), "contexts")
	how = fmt.Sprintf("context %q of %s", name, how)
	bad := func(text string, cause error) (endpoint, error) {
		return endpoint{}, &EndpointError{How: how, Text: text, Cause: cause}
	}
	contexts := store.New(dir, store.NewConfig(func() any { return &map[string]any{} },
		store.EndpointTypeGetter(docker.DockerEndpoint, func() any { return &docker.EndpointMeta{} })))
	found, err := contexts.GetMetadata(name)
	switch {
	case errdefs.IsNotFound(err):
		return bad("there is no such context in "+dir+": choose one of `docker context ls` with `docker context use`, "+
			"or name the engine's address in "+client.EnvOverrideHost, nil)
	case err != nil:
		return bad("its metadata cannot be read; make it again with `docker context create`", err)
	}
	meta, err := docker.EndpointFromContext(found)
	if err != nil || meta.Host == "" {
		return bad("it names no engine: choose another with `docker context use`", nil)
	}
	e := endpoint{host: meta.Host, how: how}
	if err := e.check(); err != nil {
		return endpoint{}, err
	}
	if !strings.HasPrefix(e.host, "tcp://") {
		return e, nil
	}
	full, err := docker.WithTLSData(contexts, name, meta)
	if err == nil && (full.TLSData != nil || meta.SkipTLSVerify) {
		e.tls, err = tlsConfig(full.TLSData, meta.SkipTLSVerify)
	}
	if err != nil {
		return bad("its TLS files cannot be used; make it again with `docker context create`", err)
	}
	return e, nil
}

// tlsFiles reads ca.pem, cert.pem and key.pem of a directory, all of which must
// be there.
func tlsFiles(dir string, skipVerify bool) (*tls.Config, error) {
	data, err := clicontext.TLSDataFromFiles(filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		return nil, err
	}
	return tlsConfig(data, skipVerify)
}

// tlsConfig uses an authority, and a certificate with its key, where there are any.
func tlsConfig(data *clicontext.TLSData, skipVerify bool) (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: skipVerify} //nolint:gosec // what the user asked for
	if data == nil {
		return out, nil
	}
	if data.CA != nil {
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(data.CA) {
			return nil, errors.New("no certificate in ca.pem")
		}
	}
	if data.Cert != nil && data.Key != nil {
		pair, err := tls.X509KeyPair(data.Cert, data.Key)
		if err != nil {
			return nil, fmt.Errorf("read the key pair: %w", err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}
