package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"mcpagents/internal/testkit/images"

	"github.com/stretchr/testify/require"
)

// A front end and an image of different protocol versions say what to do, to
// whoever calls a tool, and the handshake is answered all the same: by the
// image's label without a container, and by its init where the label lies.
func TestImageOfAnotherProtocol(t *testing.T) {
	base := images.Codex(t)
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "fakeinit"), "mcpagents/internal/testkit/fakeinit")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	const own = "rebuild it with `mcp-agents images build`"
	for name, tt := range map[string]struct{ dockerfile, want string }{
		"label-older": {"LABEL mcp-agents.protocol=0", "speaks sandbox protocol 0 and this front end 1: " + own},
		"label-newer": {"LABEL mcp-agents.protocol=2", "speaks sandbox protocol 2 and this front end only 1: use the mcp-agents that the image was made for, or rebuild"},
		"label-none":  {`LABEL mcp-agents.protocol=""`, "holds no sandbox-init (no label mcp-agents.protocol): build one with `mcp-agents images build`"},
		"init-greets": {"COPY fakeinit /usr/local/bin/sandbox-init\nENV FAKE_INIT=greets",
			"sandbox-init 9.9.9 speaks version 9, this front end 1: rebuild the image with `mcp-agents images build`"},
		"init-refuses": {"COPY fakeinit /usr/local/bin/sandbox-init\nENV FAKE_INIT=refuses",
			"sandbox-init 9.9.9 speaks version 9, the front end 1 to 1: rebuild the image with `mcp-agents images build`"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM "+base+"\n"+tt.dockerfile+"\n"), 0o644))
			image := "mcp-agents-test/" + name + ":1"
			out, err := exec.Command("docker", "build", "-q", "-t", image, dir).CombinedOutput()
			require.NoError(t, err, string(out))
			t.Cleanup(func() { _ = exec.Command("docker", "rmi", image).Run() })
			s := newSetting(t, "docker", image)
			s.args = []string{"--network", "none", "--model_base_url", "http://127.0.0.1:9/v1"}
			c := s.start(t)
			c.initialize()
			c.checkTools("codex")
			r := c.answer(c.codex("hello", nil))
			require.Contains(t, r.text(), tt.want)
			require.Contains(t, string(r.Result), `"isError":true`)
			require.NoError(t, c.in.Close())
			require.Zero(t, c.exit())
			s.requireNothing(t, c.cmd.Process.Pid)
		})
	}
}
