package trust

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/docker"
	"mcpagents/internal/testkit/images"
)

// authority makes a certificate authority and a server's certificate of it.
func authority(t *testing.T) (ca, key []byte, server tls.Certificate) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Corp"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	caDER, err := x509.CreateCertificate(rand.Reader, &template, &template, &caKey.PublicKey, caKey)
	require.NoError(t, err)
	issuer, err := x509.ParseCertificate(caDER)
	require.NoError(t, err)
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	leaf := x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server"}, NotBefore: template.NotBefore, NotAfter: template.NotAfter,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	leafDER, err := x509.CreateCertificate(rand.Reader, &leaf, issuer, &leafKey.PublicKey, caKey)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(caKey)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
		tls.Certificate{Certificate: [][]byte{leafDER}, PrivateKey: leafKey}
}

func TestLoad(t *testing.T) {
	ca, key, _ := authority(t)
	dir := t.TempDir()
	real, err := filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	for _, tt := range []struct{ name, content, err string }{
		{"one", string(ca), ""},
		{"two and comments", "# Corp\n" + string(ca) + "\n# again\n" + string(ca), ""},
		{"empty", "", "no certificate"},
		{"no PEM", "hello", "no certificate"},
		{"a key", string(key), "private key"},
		{"a key too", string(ca) + string(key), "private key"},
		{"a broken key", string(ca) + "-----BEGIN PRIVATE KEY-----\nxx\n", "private key"},
		{"a broken certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "certificate 1"},
		{"too large", string(ca) + strings.Repeat("#\n", MaxSize), "larger than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(dir, tt.name)
			require.NoError(t, os.WriteFile(path, []byte(tt.content), 0o600))
			a, err := Load(path)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, sandbox.Mount{Path: filepath.Join(real, tt.name), ReadOnly: true}, a.Mount())
		})
	}
	_, err = Load(filepath.Join(dir, "absent"))
	require.ErrorContains(t, err, "absent")
	_, err = Load(dir)
	require.ErrorContains(t, err, "not a regular file")
	require.NoError(t, os.Symlink(filepath.Join(dir, "one"), filepath.Join(dir, "link")))
	a, err := Load(filepath.Join(dir, "link"))
	require.NoError(t, err)
	require.Equal(t, filepath.Join(real, "one"), a.Path)
}

// The script must work wherever there is a shell: the operator's authorities
// are in the bundle also where the system has none.
func TestBundle(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no sh on this machine")
	}
	ca, _, _ := authority(t)
	dir := t.TempDir()
	in, out := filepath.Join(dir, "a b.pem"), filepath.Join(dir, "out.pem")
	require.NoError(t, os.WriteFile(in, ca, 0o600))
	text, err := exec.Command("sh", "-c", bundle, "sh", in, out).CombinedOutput()
	require.NoError(t, err, string(text))
	b, err := os.ReadFile(out)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(b), "\n"+string(ca)))
	require.Error(t, exec.Command("sh", "-c", bundle, "sh", filepath.Join(dir, "absent"), out).Run())
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	f.Add([]byte("-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if check(data) == nil && strings.Contains(string(data), "PRIVATE KEY-----") {
			t.Fatal("a private key passed")
		}
	})
}

// In a real sandbox curl reaches a server of the operator's authority, and not
// without it; the image's own authorities stay.
func TestInSandbox(t *testing.T) {
	image := images.Codex(t)
	ca, _, cert := authority(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	server.StartTLS()
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "corp.pem")
	require.NoError(t, os.WriteFile(path, ca, 0o644))
	a, err := Load(path)
	require.NoError(t, err)
	rt, err := docker.New("")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	spec := sandbox.Spec{Provider: "codex", Image: image, Network: "host", User: "1000:1000", Mounts: []sandbox.Mount{a.Mount()}}
	box, err := sandbox.Open(t.Context(), rt, spec, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer func() { require.NoError(t, box.Close(t.Context())) }()
	run := func(env []string, script string) sandbox.Output {
		out, err := box.Run(t.Context(), sandbox.Command{Argv: []string{"bash", "-c", script}, Env: env, Dir: "/"})
		require.NoError(t, err)
		return out
	}
	plain := rt.Environ(spec)
	require.NoError(t, a.Install(t.Context(), box, plain))
	trusting := append(plain, a.Environ(box.Welcome().Home)...)
	fetch := "curl --noproxy '*' -sS " + server.URL
	require.NotZero(t, run(plain, fetch).Exit.Code, "the negative control")
	out := run(trusting, fetch)
	require.Equal(t, "hello", string(out.Stdout), string(out.Stderr))
	out = run(trusting, `python3 -c 'import ssl,sys,urllib.request as u; sys.stdout.write(u.build_opener(u.ProxyHandler({}),`+
		`u.HTTPSHandler(context=ssl.create_default_context())).open("`+server.URL+`").read().decode())'`)
	require.Equal(t, "hello", string(out.Stdout), string(out.Stderr))
	out = run(trusting, `a=$(grep -c BEGIN "$SSL_CERT_FILE"); b=$(grep -c BEGIN /etc/ssl/certs/ca-certificates.crt); echo $((a-b)) $((b>50)); stat -c %a "$SSL_CERT_FILE"`)
	require.Equal(t, "1 1\n600\n", string(out.Stdout), string(out.Stderr))
	require.NotZero(t, run(trusting, "echo x >> "+a.Path).Exit.Code, "the operator's file is read-only")
}
