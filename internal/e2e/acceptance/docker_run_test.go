package acceptance

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/containerd/console"
	"github.com/docker/docker/api/types/container"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/testkit/wait"
	"mcpagents/internal/version"
)

// dockerRun is the front end as `docker run` starts it from its own image, with
// the program that was just built.
func (s *setting) dockerRun(t *testing.T, flags ...string) *exec.Cmd {
	t.Helper()
	image := "mcp-agents:" + version.Version
	if err := exec.Command("docker", "image", "inspect", image).Run(); err != nil {
		t.Fatalf("image %s is missing: make it with `make images`", image)
	}
	args := append([]string{"run", "--rm"}, flags...)
	args = append(args, "-v", "/var/run/docker.sock:/var/run/docker.sock", "-v", built.agents+":/usr/local/bin/mcp-agents:ro",
		"-v", s.workspace+":"+s.workspace, "-w", s.workspace, "-v", s.login+":"+s.login, "-e", "CODEX_HOME="+s.login,
		"-e", "ACCEPTANCE_RUN="+s.run, "-e", "MCP_AGENTS_CODEX_CLIENT_GONE_GRACE_MS=200", image,
		"--provider", "codex", "--image", s.image, "--network", "none", "--stop_grace", "1", "--env", "ACCEPTANCE_RUN")
	cmd := exec.Command("docker", args...)
	cmd.Dir = s.workspace
	return cmd
}

// mounting lists the containers that have the workspace: the front end's own,
// and its sandboxes.
func (s *setting) mounting(t *testing.T) []string {
	t.Helper()
	list, err := engineClient(t, "").ContainerList(t.Context(), container.ListOptions{All: true})
	require.NoError(t, err)
	var found []string
	for _, c := range list {
		if slices.ContainsFunc(c.Mounts, func(m container.MountPoint) bool { return m.Source == s.workspace }) {
			found = append(found, c.ID[:12]+" "+c.Image+" "+c.State)
		}
	}
	return found
}

// `docker run -i` as an MCP command: however the docker command goes, the front
// end's container and its sandbox go too, and those of others stay.
func TestDockerRunEnds(t *testing.T) {
	image := fakeImage(t)
	start := func(t *testing.T) (*setting, *client) {
		s := newSetting(t, "docker", image)
		c := s.startCommand(t, s.dockerRun(t, "-i"))
		c.initialize()
		c.codex(stallingCall, nil)
		c.until(func(r reply) bool { return r.Method == "codex/event" })
		require.Len(t, s.mounting(t), 2, "the observer must see both containers")
		require.NotEmpty(t, s.marked(c.cmd.Process.Pid))
		return s, c
	}
	other, otherClient := start(t)
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, s *setting, c *client)
	}{
		{"client closes its input", func(_ *testing.T, _ *setting, c *client) { closeInput(c) }},
		{"client closes its output", func(_ *testing.T, _ *setting, c *client) { _ = c.out.Close(); closeInput(c) }},
		{"docker command gets SIGTERM", func(_ *testing.T, _ *setting, c *client) { signalled(syscall.SIGTERM)(c) }},
		{"docker command gets SIGINT", func(_ *testing.T, _ *setting, c *client) { signalled(syscall.SIGINT)(c) }},
		{"docker command gets SIGHUP", func(_ *testing.T, _ *setting, c *client) { signalled(syscall.SIGHUP)(c) }},
		{"docker command gets SIGKILL", func(_ *testing.T, _ *setting, c *client) { kill(c) }},
		{"front end's container is killed", func(t *testing.T, s *setting, _ *client) {
			for _, c := range s.mounting(t) {
				if id, rest, _ := strings.Cut(c, " "); strings.HasPrefix(rest, "mcp-agents:") {
					output(t, "docker", "kill", id)
				}
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, c := start(t)
			c.begin()
			tt.do(t, s, c)
			wait.Until(t, func() bool { return len(s.mounting(t))+len(s.marked(c.cmd.Process.Pid)) == 0 }, "containers or processes are left")
			c.exit()
			require.Empty(t, s.copies(t))
		})
	}
	require.Len(t, other.mounting(t), 2, "another's containers stay")
	require.Nil(t, otherClient.answer(otherClient.request("ping", nil)).Error)
	closeInput(otherClient)
	otherClient.exit()
	wait.Until(t, func() bool { return len(other.mounting(t)) == 0 })
}

// With -t the engine gives the front end a terminal: it says what to do.
func TestDockerRunWithATerminal(t *testing.T) {
	s := newSetting(t, "docker", fakeImage(t))
	pty, path, err := console.NewPty()
	require.NoError(t, err)
	defer pty.Close()
	terminal, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	defer terminal.Close()
	cmd := s.dockerRun(t, "-it")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })

	var seen lockedBuffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		b := make([]byte, 4096)
		for {
			n, err := pty.Read(b)
			if _, _ = seen.Write(b[:n]); err != nil {
				return
			}
		}
	}()
	wait.Until(t, func() bool { return strings.Contains(seen.String(), "use `docker run -i` without -t") })
	_, err = pty.Write([]byte{4}) // the terminal's end of input
	require.NoError(t, err)
	wait.Recv(t, ended, "it still runs after the end of input")
	wait.Until(t, func() bool { return len(s.mounting(t)) == 0 })
	_ = terminal.Close()
	_ = pty.Close()
	<-read
}
