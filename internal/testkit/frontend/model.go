package frontend

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/docker"
)

// Model is the scripted model in a container without any network. Sandboxes join
// its network namespace, so the traffic stays on a loopback.
type Model struct{ Network, URL string }

// StartModel runs the model of a built mcp-agents in a container of the image
// until the test ends.
func StartModel(t *testing.T, agents, image string, args ...string) Model {
	t.Helper()
	rt, err := docker.New("")
	require.NoError(t, err)
	spec := sandbox.Spec{Provider: "model", Instance: "frontendtest", Image: image, Network: "none", User: "1000:1000",
		Mounts: []sandbox.Mount{{Path: agents, ReadOnly: true}}}
	box, err := sandbox.Open(t.Context(), rt, spec, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		require.NoError(t, box.Close(ctx))
		require.NoError(t, rt.Close())
	})
	proc, err := box.Spawn(t.Context(), sandbox.Command{Argv: append([]string{agents, "model"}, args...), Env: rt.Environ(spec), Dir: "/"})
	require.NoError(t, err)
	go func() { _, _ = io.Copy(io.Discard, proc.Stderr()) }() // ends with the sandbox
	line, err := bufio.NewReader(proc.Stdout()).ReadString('\n')
	require.NoError(t, err)
	fields := strings.Fields(line)
	return Model{Network: "container:" + box.ID(), URL: "http://" + fields[len(fields)-1] + "/v1"}
}
