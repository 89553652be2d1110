package acceptance

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"mcpagents/internal/testkit/wait"

	"github.com/containerd/console"
	"github.com/stretchr/testify/require"
)

// What `docker run -it` gives the server is a terminal: it says so, once.
func TestServerOnATerminalSaysSo(t *testing.T) {
	const warning = "stdin is a terminal: an MCP client speaks over pipes; use `docker run -i` without -t"
	for _, provider := range []string{"codex", "claude"} {
		t.Run(provider, func(t *testing.T) {
			s := newSetting(t, "docker", "mcp-agents-test/none:1")
			s.engine, s.args = "unix://"+s.login+"/no-engine.sock", []string{"--provider", provider}
			pty, path, err := console.NewPty()
			require.NoError(t, err)
			defer pty.Close()
			terminal, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOCTTY, 0)
			require.NoError(t, err)
			defer terminal.Close()
			var stderr lockedBuffer
			cmd := exec.Command(built.agents, "--provider", provider, "--workspace", s.workspace, "--docker_host", s.engine)
			cmd.Dir, cmd.Env = s.workspace, append(os.Environ(), "CODEX_HOME="+s.login)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, &stderr
			require.NoError(t, cmd.Start())
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			wait.Until(t, func() bool { return strings.Contains(stderr.String(), "ready (provider") })
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
			_ = cmd.Wait()
			require.Equal(t, 143, cmd.ProcessState.ExitCode(), stderr.String())
			require.Equal(t, 1, strings.Count(stderr.String(), warning), stderr.String())

			c := s.start(t) // control: over pipes
			c.initialize()
			require.NoError(t, c.in.Close())
			require.Zero(t, c.exit())
			require.NotContains(t, c.stderr.String(), "is a terminal")
		})
	}
}
