package acceptance

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/docker"
)

// scriptedModel is the model in a container without any network. Sandboxes join
// its network namespace, so the traffic stays on a loopback.
type scriptedModel struct {
	network, url string
	box          *sandbox.Sandbox
}

func startModel(t *testing.T, image string, args ...string) *scriptedModel {
	t.Helper()
	rt, err := docker.New("")
	require.NoError(t, err)
	spec := sandbox.Spec{Provider: "model", Instance: "acceptance", Image: image, Network: "none", User: "1000:1000",
		Mounts: []sandbox.Mount{{Path: built.agents, ReadOnly: true}}}
	box, err := sandbox.Open(t.Context(), rt, spec, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		require.NoError(t, box.Close(ctx))
		require.NoError(t, rt.Close())
	})
	proc, err := box.Spawn(t.Context(), sandbox.Command{Argv: append([]string{built.agents, "model"}, args...), Env: rt.Environ(spec), Dir: "/"})
	require.NoError(t, err)
	go func() { _, _ = io.Copy(io.Discard, proc.Stderr()) }() // ends with the sandbox
	line, err := bufio.NewReader(proc.Stdout()).ReadString('\n')
	require.NoError(t, err)
	fields := strings.Fields(line)
	return &scriptedModel{network: "container:" + box.ID(), url: "http://" + fields[len(fields)-1] + "/v1", box: box}
}

// realCodex is a setting with the real Codex and the scripted model, and a
// workspace of the given owner.
func realCodex(t *testing.T, owner int, modelArgs ...string) *setting {
	t.Helper()
	image := codexImage(t)
	m := startModel(t, image, modelArgs...)
	s := newSetting(t, "docker", image)
	if os.Getuid() == 0 {
		require.NoError(t, os.Chown(s.workspace, owner, owner))
	} else if owner != os.Getuid() {
		t.Skipf("only root can make a workspace of uid %d", owner)
	}
	s.args = []string{"--network", m.network, "--model_base_url", m.url}
	return s
}

// turn runs one call to its end and returns the answer's text.
func (c *client) turn(prompt string, more map[string]any) string {
	c.t.Helper()
	r := c.answer(c.codex(prompt, more))
	require.Nil(c.t, r.Error)
	return r.text()
}

func exists(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}
