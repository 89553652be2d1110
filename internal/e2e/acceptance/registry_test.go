package acceptance

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// blob is what a registry tells about one.
type blob struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int    `json:"size"`
}

// imageRegistry is a registry on loopback that holds one image, which is built
// from the Dockerfile and then removed from the engine. Engines ask one on
// loopback without TLS.
func imageRegistry(t *testing.T, repository, tag, dockerfile string) (host string) {
	t.Helper()
	dir, local := t.TempDir(), "mcp-agents-test/registry:1"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(dockerfile), 0o644))
	output(t, "docker", "build", "-q", "-t", local, dir)
	files := untar(t, []byte(output(t, "docker", "save", local)))
	output(t, "docker", "rmi", local)

	var saved []struct {
		Config string
		Layers []string
	}
	require.NoError(t, json.Unmarshal(files["manifest.json"], &saved))
	require.Len(t, saved, 1)
	blobs := map[string][]byte{}
	add := func(kind string, data []byte) blob {
		sum := sha256.Sum256(data)
		b := blob{"application/vnd.docker." + kind, "sha256:" + hex.EncodeToString(sum[:]), len(data)}
		blobs[b.Digest] = data
		return b
	}
	config := add("container.image.v1+json", files[saved[0].Config])
	var layers []blob
	for _, name := range saved[0].Layers {
		layers = append(layers, add("image.rootfs.diff.tar.gzip", zipped(t, files[name])))
	}
	const kind = "distribution.manifest.v2+json"
	text, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.docker." + kind, "config": config, "layers": layers})
	require.NoError(t, err)
	manifest := add(kind, text)

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		what, _ := strings.CutPrefix(r.URL.Path, "/v2/"+repository)
		switch digest := filepath.Base(what); {
		case r.URL.Path == "/v2/": // yes, this is a registry
		case what == "/manifests/"+tag || what == "/manifests/"+manifest.Digest:
			w.Header().Set("Content-Type", manifest.MediaType)
			w.Header().Set("Docker-Content-Digest", manifest.Digest)
			_, _ = w.Write(text)
		case what == "/blobs/"+digest && blobs[digest] != nil:
			_, _ = w.Write(blobs[digest])
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func untar(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		files[h.Name], err = io.ReadAll(r)
		require.NoError(t, err)
	}
}

func zipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	require.NoError(t, errors.Join(err, w.Close()))
	return b.Bytes()
}
