package docker

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox"
)

// Lists and inspections of the two engines, cut to what differs or is used:
// Podman leaves members out, adds its own and says null for empty.
var listings = map[string][2]string{
	"docker": {
		`[{"Id":"ID","Names":["/mcp-agents-codex-x"],"Image":"mcp-agents/codex:1","ImageID":"sha256:1","Command":"/usr/local/bin/sandbox-init","Created":1700000000,
		"Ports":[],"Labels":{"mcp-agents.sandbox":"box","mcp-agents.provider":"codex","mcp-agents.instance":"7"},"State":"exited","Status":"Exited (0) 3 hours ago",
		"HostConfig":{"NetworkMode":"default"},"NetworkSettings":{"Networks":{"bridge":{}}},"Mounts":[]}]`,
		`{"Id":"ID","Created":"2023-11-14T22:13:20.123456789Z","Path":"/usr/local/bin/sandbox-init","Args":[],"State":{"Status":"exited","Running":false,"Pid":0,"ExitCode":0,
		"StartedAt":"2023-11-14T22:13:21Z","FinishedAt":"2023-11-14T22:14:20.5Z"},"Name":"/mcp-agents-codex-x","HostConfig":{},"Mounts":[],"Config":{"User":"1000:1000","Labels":{}}}`},
	"podman": {
		`[{"Id":"ID","Names":["/mcp-agents-codex-x"],"Image":"mcp-agents/codex:1","ImageID":"sha256:1","Command":"/usr/local/bin/sandbox-init","Created":1700000000,
		"Ports":null,"Labels":{"mcp-agents.sandbox":"box","mcp-agents.provider":"codex","mcp-agents.instance":"7","io.buildah.version":"1.39.3"},"State":"exited","Status":"Exited (0) 3 hours ago",
		"NetworkSettings":{"Networks":{"podman":{"IPAMConfig":null,"Links":null}}},"Mounts":null,"Name":"","Config":null,"NetworkingConfig":null,"Platform":null,"DefaultReadOnlyNonRecursive":false}]`,
		`{"Id":"ID","Created":"2023-11-14T22:13:20.123456789Z","Path":"/usr/local/bin/sandbox-init","Args":null,"State":{"Status":"exited","Running":false,"Pid":0,"ExitCode":0,"Error":"",
		"StartedAt":"2023-11-14T23:13:21.1+01:00","FinishedAt":"2023-11-14T23:14:20.5+01:00"},"Name":"/mcp-agents-codex-x","Driver":"overlay","HostConfig":{"Binds":null},"GraphDriver":{"Name":"overlay",
		"Data":{"UpperDir":"/x"}},"Mounts":null,"Config":{"User":"1000:1000","Labels":null}}`},
}

func TestListingsOfBothEngines(t *testing.T) {
	id := strings.Repeat("c", 64)
	for name, listing := range listings {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(socketDir(t), "engine.sock")
			serveAt(t, path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Api-Version", "1.41")
				w.Header().Set("Content-Type", "application/json")
				body := listing[0]
				if strings.Contains(r.URL.Path, id) {
					body = listing[1]
				}
				_, _ = io.WriteString(w, strings.ReplaceAll(body, `"ID"`, `"`+id+`"`))
			}))
			rt, err := New("unix://" + path)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, rt.Close()) })
			list, err := rt.List(t.Context())
			require.NoError(t, err)
			require.Equal(t, []sandbox.Listed{{ID: id, Sandbox: "box", Provider: "codex", Instance: "7", Image: "mcp-agents/codex:1", Created: time.Unix(1700000000, 0),
				State: "exited", User: "1000:1000"}}, list)
			lines, err := rt.Sweep(t.Context(), true)
			require.NoError(t, err)
			require.Equal(t, []string{"container cccccccccccc: exited"}, lines)
		})
	}
}
