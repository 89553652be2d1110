package docker

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// userHome is a home directory with the docker command's files in it.
type userHome struct {
	t   *testing.T
	dir string
}

func (h userHome) write(name, content string) {
	path := filepath.Join(h.dir, name)
	require.NoError(h.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(h.t, os.WriteFile(path, []byte(content), 0o600))
}

func (h userHome) context(name, meta string) string {
	sum := sha256.Sum256([]byte(name))
	key := hex.EncodeToString(sum[:])
	h.write(".docker/contexts/meta/"+key+"/meta.json", meta)
	return key
}

// finder sees only what the test made: the environment, and sockets below home
// and those that it lists.
func (h userHome) finder(env map[string]string, sockets ...string) finder {
	return finder{home: h.dir, uid: 1234, getenv: func(name string) string { return env[name] }, exists: func(path string) bool {
		if strings.HasPrefix(path, h.dir) {
			_, err := os.Stat(path)
			return err == nil
		}
		for _, s := range sockets {
			if s == path {
				return true
			}
		}
		return false
	}}
}

const colima = `{"Name":"colima","Metadata":{"Description":"colima"},"Endpoints":{"docker":{"Host":"unix:///home/me/.colima/x.sock","SkipTLSVerify":false}}}`

func TestFind(t *testing.T) {
	const standard = "unix:///var/run/docker.sock"
	for _, tt := range []struct {
		name    string
		flag    string
		env     map[string]string
		files   map[string]string
		context [2]string // name, metadata
		sockets []string
		host    string
		how     string
	}{
		{name: "the flag wins", flag: "tcp://10.0.0.1:2375", env: map[string]string{"DOCKER_HOST": "unix:///b", "DOCKER_CONTEXT": "c"},
			host: "tcp://10.0.0.1:2375", how: "--docker_host"},
		{name: "then DOCKER_HOST", env: map[string]string{"DOCKER_HOST": "unix:///b", "DOCKER_CONTEXT": "colima"}, context: [2]string{"colima", colima},
			host: "unix:///b", how: "DOCKER_HOST"},
		{name: "then DOCKER_CONTEXT", env: map[string]string{"DOCKER_CONTEXT": "colima"}, context: [2]string{"colima", colima},
			files: map[string]string{".docker/config.json": `{"currentContext":"another"}`},
			host:  "unix:///home/me/.colima/x.sock", how: `context "colima" of DOCKER_CONTEXT`},
		{name: "then the current context", context: [2]string{"colima", colima}, sockets: []string{"/var/run/docker.sock"},
			files: map[string]string{".docker/config.json": `{"auths":{},"currentContext":"colima"}`},
			host:  "unix:///home/me/.colima/x.sock", how: `context "colima" of the current context`},
		{name: "the default context is no file", files: map[string]string{".docker/config.json": `{"currentContext":"default"}`},
			sockets: []string{"/var/run/docker.sock"}, host: standard, how: "the default socket"},
		{name: "a configuration without a context", files: map[string]string{".docker/config.json": `{}`},
			sockets: []string{"/var/run/docker.sock"}, host: standard, how: "the default socket"},
		{name: "a login that cannot be decoded", context: [2]string{"colima", colima},
			files: map[string]string{".docker/config.json": `{"auths":{"r.example":{"auth":"?"}},"currentContext":"colima"}`},
			host:  "unix:///home/me/.colima/x.sock", how: `context "colima" of the current context`},
		{name: "the default socket before others", sockets: []string{"/run/podman/podman.sock", "/run/user/1234/docker.sock", "/var/run/docker.sock"},
			host: standard, how: "the default socket"},
		{name: "a rootless engine's", env: map[string]string{"XDG_RUNTIME_DIR": "/xdg"}, sockets: []string{"/xdg/podman/podman.sock", "/xdg/docker.sock"},
			host: "unix:///xdg/docker.sock", how: "a rootless engine's socket"},
		{name: "a rootless engine's without XDG_RUNTIME_DIR", sockets: []string{"/run/user/1234/docker.sock"},
			host: "unix:///run/user/1234/docker.sock", how: "a rootless engine's socket"},
		{name: "Docker Desktop's", files: map[string]string{".docker/run/docker.sock": "", ".colima/default/docker.sock": ""}, sockets: []string{"/run/podman/podman.sock"},
			host: "unix://HOME/.docker/run/docker.sock", how: "Docker Desktop's socket"},
		{name: "Colima's", files: map[string]string{".colima/default/docker.sock": ""}, host: "unix://HOME/.colima/default/docker.sock", how: "Colima's socket"},
		{name: "Rancher Desktop's", files: map[string]string{".rd/docker.sock": ""}, host: "unix://HOME/.rd/docker.sock", how: "Rancher Desktop's socket"},
		{name: "Podman's for the user", env: map[string]string{"XDG_RUNTIME_DIR": "/xdg"}, sockets: []string{"/run/podman/podman.sock", "/xdg/podman/podman.sock"},
			host: "unix:///xdg/podman/podman.sock", how: "Podman's socket"},
		{name: "Podman's for root", sockets: []string{"/run/podman/podman.sock"}, host: "unix:///run/podman/podman.sock", how: "Podman's socket"},
		{name: "nothing at all", host: standard, how: "the default address"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := userHome{t, t.TempDir()}
			for name, content := range tt.files {
				home.write(name, content)
			}
			if tt.context[0] != "" {
				home.context(tt.context[0], tt.context[1])
			}
			e, err := home.finder(tt.env, tt.sockets...).find(tt.flag)
			require.NoError(t, err)
			assert.Equal(t, strings.ReplaceAll(tt.host, "HOME", home.dir), e.host)
			assert.Equal(t, tt.how, e.how)
			assert.Nil(t, e.tls)
		})
	}
}

// DOCKER_CONFIG moves the configuration and the contexts.
func TestFindInDockerConfig(t *testing.T) {
	home := userHome{t, t.TempDir()}
	home.context("colima", colima)
	home.write(".docker/config.json", `{"currentContext":"colima"}`)
	elsewhere := home.finder(map[string]string{"DOCKER_CONFIG": filepath.Join(home.dir, ".docker")})
	elsewhere.home = "/nonexistent"
	e, err := elsewhere.find("")
	require.NoError(t, err)
	require.Equal(t, "unix:///home/me/.colima/x.sock", e.host)
}

func TestFindFails(t *testing.T) {
	for _, tt := range []struct {
		name   string
		flag   string
		env    map[string]string
		config string
		meta   string // of the context "x"
		want   []string
	}{
		{name: "broken configuration", config: `{"currentContext":`, want: []string{"config.json", "unexpected EOF", "DOCKER_HOST"}},
		{name: "a configuration of another shape", config: `{"currentContext":7}`, want: []string{"config.json", "cannot unmarshal"}},
		{name: "no such context", config: `{"currentContext":"gone"}`, want: []string{`"gone" of the current context`, "no such context", "docker context use"}},
		{name: "no such context in the environment", env: map[string]string{"DOCKER_CONTEXT": "gone"}, want: []string{`"gone" of DOCKER_CONTEXT`}},
		{name: "a context that leads out of the store", env: map[string]string{"DOCKER_CONTEXT": "../../etc"}, want: []string{"no such context"}},
		{name: "a broken context", config: `{"currentContext":"x"}`, meta: `{"Endpoints":{"docker"`, want: []string{"meta.json", `context "x"`}},
		{name: "a context of another shape", config: `{"currentContext":"x"}`, meta: `[]`, want: []string{"meta.json", "cannot unmarshal"}},
		{name: "a context without an engine", config: `{"currentContext":"x"}`, meta: `{"Endpoints":{"kubernetes":{"Host":"https://k"}}}`,
			want: []string{"names no engine"}},
		{name: "ssh in a context", config: `{"currentContext":"x"}`, meta: `{"Endpoints":{"docker":{"Host":"ssh://me@far"}}}`,
			want: []string{`context "x"`, "ssh://", "ssh -nNT -L"}},
		{name: "ssh in the environment", env: map[string]string{"DOCKER_HOST": "ssh://me@far"}, want: []string{"DOCKER_HOST", "ssh -nNT -L"}},
		{name: "no address", env: map[string]string{"DOCKER_HOST": "localhost:2375"}, want: []string{"DOCKER_HOST", "is not an engine's address"}},
		{name: "a scheme alone", env: map[string]string{"DOCKER_HOST": "unix://"}, want: []string{"is not an engine's address"}},
		{name: "an address that is not one", env: map[string]string{"DOCKER_HOST": "tcp://[::1"}, want: []string{"cannot be parsed"}},
		{name: "a password is not shown", env: map[string]string{"DOCKER_HOST": "http://me:secret@host"}, want: []string{"me:xxxxx@host"}},
		{name: "TLS without files", env: map[string]string{"DOCKER_HOST": "tcp://h:2376", "DOCKER_TLS_VERIFY": "1"}, want: []string{"DOCKER_TLS_VERIFY", "ca.pem"}},
		{name: "TLS in a directory without files", env: map[string]string{"DOCKER_HOST": "tcp://h:2376", "DOCKER_CERT_PATH": "/nonexistent"},
			want: []string{"/nonexistent/ca.pem"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := userHome{t, t.TempDir()}
			if tt.config != "" {
				home.write(".docker/config.json", tt.config)
			}
			if tt.meta != "" {
				home.context("x", tt.meta)
			}
			_, err := home.finder(tt.env, "/var/run/docker.sock").find(tt.flag)
			var bad *EndpointError
			require.ErrorAs(t, err, &bad)
			for _, want := range tt.want {
				assert.ErrorContains(t, err, want)
			}
			assert.NotContains(t, err.Error(), "secret")
		})
	}
}

// A server must start with a configuration that is broken: the calls say so.
func TestNewDefersWhatCanChange(t *testing.T) {
	t.Setenv("DOCKER_HOST", "ssh://me@far")
	rt, err := New("")
	require.NoError(t, err)
	_, err = rt.Inspect(t.Context(), "image")
	require.ErrorContains(t, err, "ssh -nNT -L")
	_, err = rt.Sweep(t.Context(), true)
	require.ErrorContains(t, err, "ssh -nNT -L")
	require.NoError(t, rt.Close())
	_, err = New("ssh://me@far") // the operator's own flag is judged at once
	require.ErrorContains(t, err, "--docker_host")
}

// pair is a certificate authority's or a host's certificate and key in PEM.
type pair struct {
	cert, key string
	x509      *x509.Certificate
	private   *ecdsa.PrivateKey
}

func newPair(t *testing.T, issuer *pair) pair {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<60))
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		NotBefore: time.Now().Add(-time.Hour), IsCA: issuer == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	parent, signer := template, key
	if issuer != nil {
		parent, signer = issuer.x509, issuer.private
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	return pair{cert: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		key: string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})), x509: cert, private: key}
}

func TestFindTLS(t *testing.T) {
	ca := newPair(t, nil)
	mine := newPair(t, &ca)
	home := userHome{t, t.TempDir()}
	for _, dir := range []string{".docker/", "certs/"} {
		home.write(dir+"ca.pem", ca.cert)
		home.write(dir+"cert.pem", mine.cert)
		home.write(dir+"key.pem", mine.key)
	}
	certs := filepath.Join(home.dir, "certs")
	full := home.context("full", `{"Endpoints":{"docker":{"Host":"tcp://127.0.0.1:2376"}}}`)
	for name, content := range map[string]string{"ca": ca.cert, "cert": mine.cert, "key": mine.key} {
		home.write(".docker/contexts/tls/"+full+"/docker/"+name+".pem", content)
	}
	onlyCA := home.context("ca", `{"Endpoints":{"docker":{"Host":"tcp://127.0.0.1:2376","SkipTLSVerify":false}}}`)
	home.write(".docker/contexts/tls/"+onlyCA+"/docker/ca.pem", ca.cert)
	home.context("skip", `{"Endpoints":{"docker":{"Host":"tcp://127.0.0.1:2376","SkipTLSVerify":true}}}`)
	home.context("plain", `{"Endpoints":{"docker":{"Host":"tcp://127.0.0.1:2375"}}}`)
	for _, tt := range []struct {
		name             string
		env              map[string]string
		tls, certs, skip bool
	}{
		{"DOCKER_TLS_VERIFY", map[string]string{"DOCKER_HOST": "tcp://127.0.0.1:2376", "DOCKER_TLS_VERIFY": "1"}, true, true, false},
		{"with DOCKER_CERT_PATH", map[string]string{"DOCKER_HOST": "tcp://127.0.0.1:2376", "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": certs}, true, true, false},
		{"DOCKER_CERT_PATH alone does not verify", map[string]string{"DOCKER_HOST": "tcp://127.0.0.1:2376", "DOCKER_CERT_PATH": certs}, true, true, true},
		{"never for a socket", map[string]string{"DOCKER_HOST": "unix:///run/x.sock", "DOCKER_TLS_VERIFY": "1"}, false, false, false},
		{"neither", map[string]string{"DOCKER_HOST": "tcp://127.0.0.1:2375"}, false, false, false},
		{"a context", map[string]string{"DOCKER_CONTEXT": "full"}, true, true, false},
		{"a context with an authority only", map[string]string{"DOCKER_CONTEXT": "ca"}, true, false, false},
		{"a context that skips", map[string]string{"DOCKER_CONTEXT": "skip"}, true, false, true},
		{"a context without TLS", map[string]string{"DOCKER_CONTEXT": "plain", "DOCKER_TLS_VERIFY": "1"}, false, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := home.finder(tt.env).find("")
			require.NoError(t, err)
			require.Equal(t, tt.tls, e.tls != nil)
			if e.tls != nil {
				require.Equal(t, tt.certs, len(e.tls.Certificates) == 1)
				require.Equal(t, tt.skip, e.tls.InsecureSkipVerify)
			}
		})
	}
	home.write(".docker/contexts/tls/"+full+"/docker/cert.pem", "broken")
	_, err := home.finder(map[string]string{"DOCKER_CONTEXT": "full"}).find("")
	require.ErrorContains(t, err, "TLS files cannot be used")
	home.write(".docker/contexts/tls/"+onlyCA+"/docker/ca.pem", "broken")
	_, err = home.finder(map[string]string{"DOCKER_CONTEXT": "ca"}).find("")
	require.ErrorContains(t, err, "no certificate in")
}

// The docker command's files belong to the user, but nothing in them may end
// the server.
func FuzzContext(f *testing.F) {
	f.Add(`{"currentContext":"x"}`, colima)
	f.Add(`{"currentContext":"x"}`, `{"Endpoints":{"docker":{"Host":"ssh://far"}}}`)
	f.Add(`{`, `null`)
	f.Fuzz(func(t *testing.T, config, meta string) {
		home := userHome{t, t.TempDir()}
		home.write(".docker/config.json", config)
		home.context("x", meta)
		e, err := home.finder(nil).find("")
		if err == nil {
			require.NoError(t, e.check())
		}
	})
}
