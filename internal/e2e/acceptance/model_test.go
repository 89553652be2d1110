package acceptance

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/testkit/frontend"
	"mcpagents/internal/testkit/images"
)

// realCodex is a setting with the real Codex and the scripted model, and a
// workspace of the given owner.
func realCodex(t *testing.T, owner int, modelArgs ...string) *setting {
	t.Helper()
	image := images.Codex(t)
	m := frontend.StartModel(t, built.agents, image, modelArgs...)
	s := newSetting(t, "docker", image)
	if os.Getuid() == 0 {
		require.NoError(t, os.Chown(s.workspace, owner, owner))
	} else if owner != os.Getuid() {
		t.Skipf("only root can make a workspace of uid %d", owner)
	}
	s.args = []string{"--network", m.Network, "--model_base_url", m.URL}
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
