package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/setup"
)

// What setup writes for each client is read as that client starts it, bare and
// by docker run.
func TestEntriesOfSetup(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	getenv := func(name string) string { return map[string]string{"PWD": dir, "HOME": home}[name] }
	binary := filepath.Join(dir, "mcp-agents")
	require.NotEmpty(t, setup.Clients())
	for _, client := range setup.Clients() {
		for _, docker := range []bool{false, true} {
			req := setup.Request{Client: client.Name, Docker: docker, Dir: dir, Home: home, Binary: binary, Getenv: getenv}
			out, err := setup.Run(req)
			require.NoError(t, err, client.Name)
			servers, err := configured(out.Path, getenv)
			require.NoError(t, err, client.Name)
			require.Len(t, servers, 1, client.Name)
			argv := servers[0].argv
			if docker {
				assert.Equal(t, []string{"docker", "run", "-i", "--rm"}, argv[:4], client.Name)
				assert.True(t, slices.Contains(argv, dir+":"+dir), "%s: the project is mounted: %q", client.Name, argv)
			} else {
				assert.Equal(t, binary, argv[0], client.Name)
				assert.Equal(t, "--provider", argv[1], client.Name)
			}
			assert.NotContains(t, argv, "", client.Name)
			require.NoError(t, os.Remove(out.Path))
		}
	}
}
