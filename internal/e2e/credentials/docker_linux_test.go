package credentials

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/docker"
	"mcpagents/internal/testkit/frontend"
)

// fakeImage is the Codex image with fakelogin in front of the real Codex.
func fakeImage(t *testing.T) string {
	t.Helper()
	return frontend.InFront(t, fakeCodex(), "mcp-agents-test/fakelogin:latest")
}

// newDockerScene has its vendor in a container without any network, which the sandboxes join.
func newDockerScene(t *testing.T) *scene {
	image := fakeImage(t)
	s := newScene(t)
	s.Image = image
	rt, err := docker.New("")
	require.NoError(t, err)
	spec := sandbox.Spec{Provider: "model", Instance: "logintest", Image: image, Network: "none", User: "1000:1000"}
	box, err := sandbox.Open(t.Context(), rt, spec, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		require.NoError(t, box.Close(ctx))
		s.listening.Wait()
		require.NoError(t, rt.Close())
	})
	proc, err := box.Spawn(t.Context(), sandbox.Command{Argv: []string{"codex", "token-server"}, Env: rt.Environ(spec), Dir: "/", Stdin: true})
	require.NoError(t, err)
	go func() { _, _ = io.Copy(io.Discard, proc.Stderr()) }() // ends with the sandbox
	s.permit = proc.Stdin()
	s.listen(vendorID, proc.Stdout())
	s.await(map[string]int{"listening": 1})
	s.server = strings.Fields(s.find("listening")[0].text)[2]
	s.Network = "container:" + box.ID()
	return s
}

func TestOneRefreshInContainers(t *testing.T) { newDockerScene(t).oneRefresh(4) }

func TestTheRefresherIsKilledInContainers(t *testing.T) {
	s := newDockerScene(t)
	s.refresherKilled(4, func(pid int) { require.NoError(t, syscall.Kill(pid, syscall.SIGKILL)) })
}
