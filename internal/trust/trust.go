// Package trust makes what runs in a sandbox trust certificate authorities
// beside those of its image.
//
// Programs disagree on how they are told. Some variables add authorities
// (NODE_EXTRA_CA_CERTS, CODEX_CA_CERTIFICATE) and name the operator's own file.
// The others replace what a program trusts (SSL_CERT_FILE and the variables of
// curl, git and Python's requests), and with the operator's file alone every
// public host would fail: they name a bundle of the image's authorities and the
// operator's, made in the private home before the first command.
package trust

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"mcpagents/internal/sandbox"
)

// MaxSize bounds a file of authorities, in bytes: a full set of the public ones
// has 250 KB.
const MaxSize = 1 << 20

// bundleName is the file in the private home that holds all authorities.
const bundleName = ".mcp-agents-ca.pem"

// Authorities are certificate authorities in a PEM file.
type Authorities struct {
	// Path is the file, absolute and without symbolic links. Sandboxes see it
	// at the same path, read-only.
	Path string
}

// Load checks the file: certificates in PEM, and no private key, which a
// sandbox must not be given by mistake.
func Load(path string) (*Authorities, error) {
	real, err := filepath.Abs(path)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		return nil, fmt.Errorf("find the certificate authorities in %s: %w", path, err)
	}
	data, err := readFile(real)
	if err == nil {
		err = check(data)
	}
	if err != nil {
		return nil, fmt.Errorf("use the certificate authorities in %s: %w", path, err)
	}
	return &Authorities{Path: real}, nil
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err == nil && len(data) > MaxSize {
		err = fmt.Errorf("larger than %d bytes", MaxSize)
	}
	return data, err
}

func check(data []byte) error {
	found := 0
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if strings.Contains(block.Type, "PRIVATE KEY") {
			return errors.New("it holds a private key: name a file with certificates only")
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("certificate %d: %w", found+1, err)
		}
		found++
	}
	switch {
	case found == 0:
		return errors.New("no certificate in PEM in it")
	case bytes.Contains(data, []byte("PRIVATE KEY-----")): // malformed, and a key all the same
		return errors.New("it holds a private key: name a file with certificates only")
	}
	return nil
}

// Mount is what a sandbox must see.
func (a *Authorities) Mount() sandbox.Mount { return sandbox.Mount{Path: a.Path, ReadOnly: true} }

// Environ is what a command's environment gets, for a private home.
func (a *Authorities) Environ(home string) []string {
	bundle := bundlePath(home)
	return []string{
		"NODE_EXTRA_CA_CERTS=" + a.Path, "CODEX_CA_CERTIFICATE=" + a.Path,
		"SSL_CERT_FILE=" + bundle, "CURL_CA_BUNDLE=" + bundle, "GIT_SSL_CAINFO=" + bundle, "REQUESTS_CA_BUNDLE=" + bundle,
	}
}

// bundlePath is in a sandbox, where paths have slashes whatever runs here.
func bundlePath(home string) string { return strings.TrimSuffix(home, "/") + "/" + bundleName }

// bundle joins the system's authorities, from where Debian, Red Hat, SUSE and
// the BSDs keep them, and the operator's ($1) in $2.
const bundle = `set -e; umask 077
for system in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem /etc/ssl/cert.pem /dev/null; do
	[ -r "$system" ] && break
done
{ cat "$system"; echo; cat "$1"; } > "$2"`

// Install makes the bundle in a sandbox that sees Mount, before its main
// command. The image must have a shell.
func (a *Authorities) Install(ctx context.Context, box *sandbox.Sandbox, env []string) error {
	out, err := box.Run(ctx, sandbox.Command{
		Argv: []string{"sh", "-c", bundle, "sh", a.Path, bundlePath(box.Welcome().Home)}, Env: env, Dir: "/",
	})
	if err != nil {
		return fmt.Errorf("make the bundle of certificate authorities: %w", err)
	}
	if out.Exit.Code != 0 {
		return fmt.Errorf("make the bundle of certificate authorities: %s", bytes.TrimSpace(out.Stderr))
	}
	return nil
}
