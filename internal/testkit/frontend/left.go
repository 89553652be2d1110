package frontend

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox/docker"
)

var engines sync.Map // address → *client.Client

// Engine is a client of the engine at an address; empty means the one that the
// docker command uses.
func Engine(t *testing.T, address string) *client.Client {
	t.Helper()
	if c, ok := engines.Load(address); ok {
		return c.(*client.Client)
	}
	host := address
	if host == "" {
		out, err := exec.Command("docker", "context", "inspect", "--format", "{{.Endpoints.docker.Host}}").Output()
		require.NoError(t, err)
		host = strings.TrimSpace(string(out))
	}
	c, err := client.NewClientWithOpts(client.WithHost(host), client.WithAPIVersionNegotiation())
	require.NoError(t, err)
	engines.Store(address, c)
	return c
}

// Containers lists those of the front end with that pid, with their states. An
// engine with an address of its own that is down has none: what is left in it
// shows when it is up again.
func Containers(t *testing.T, address string, frontEnd int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	list, err := Engine(t, address).ContainerList(ctx, container.ListOptions{All: true,
		Filters: filters.NewArgs(filters.Arg("label", docker.LabelInstance+"="+strconv.Itoa(frontEnd)))})
	if address != "" && client.IsErrConnectionFailed(err) {
		return nil
	}
	require.NoError(t, err)
	var found []string
	for _, c := range list {
		// An engine that was killed while a container ended may remove it twice
		// when it starts again, and then lists as "dead" what it no longer knows
		// (20.10: "No such container" to every other question).
		if _, err := Engine(t, address).ContainerInspect(ctx, c.ID); c.State == container.StateDead && errdefs.IsNotFound(err) {
			continue
		}
		found = append(found, c.ID[:12]+" "+c.State)
	}
	return found
}

// Marked lists processes of this machine, their pids and command lines, whose
// environment holds env or whose command line holds argument, if that is not
// empty; without this process and the pids of except.
func Marked(env, argument string, except ...int) []string {
	var found []string
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() || slices.Contains(except, pid) {
			continue
		}
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if bytes.Contains(environ, []byte(env)) || argument != "" && bytes.Contains(cmdline, []byte(argument)) {
			found = append(found, strconv.Itoa(pid)+" "+string(bytes.ReplaceAll(cmdline, []byte{0}, []byte(" "))))
		}
	}
	return found
}
