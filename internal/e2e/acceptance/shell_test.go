package acceptance

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mcpagents/internal/testkit/images"
	"mcpagents/internal/testkit/wait"

	"github.com/containerd/console"
	"github.com/stretchr/testify/require"
)

// subcommand is one of the program's with a setting's flags, without a network.
func (s *setting) subcommand(name string, more ...string) *exec.Cmd {
	args := []string{name, "--runtime", s.runtime}
	if s.runtime == "docker" {
		args = append(args, "--image", s.image, "--network", "none")
	}
	cmd := exec.Command(built.agents, append(args, more...)...)
	cmd.Dir = s.workspace
	cmd.Env = append(os.Environ(), "CODEX_HOME="+s.login, "OPENAI_API_KEY=", "CODEX_API_KEY=", "ACCEPTANCE_RUN="+s.run,
		"PATH="+filepath.Dir(built.fakeCodex)+":"+os.Getenv("PATH"))
	return cmd
}

// running are the containers that see the workspace, or the processes of the
// local runtime's sandbox.
func (s *setting) running(t *testing.T, program *exec.Cmd) []string {
	t.Helper()
	if s.runtime == "docker" {
		return sharing(t, s.workspace)
	}
	return s.marked(program.Process.Pid)
}

// noSandbox waits until nothing of the program's sandbox is there.
func (s *setting) noSandbox(t *testing.T, program *exec.Cmd) {
	t.Helper()
	wait.Until(t, func() bool { return len(s.running(t, program)) == 0 })
}

// By pipes: a script from stdin, and a command; where a call would run, with what
// it would get.
func TestShellByPipes(t *testing.T) {
	s := newSetting(t, "docker", images.Codex(t))
	cmd := s.subcommand("shell")
	cmd.Stdin = strings.NewReader("id -u; pwd; ls \"$CODEX_HOME\"; cat >/dev/null </dev/tty || echo no-terminal; exit 3\n")
	out, err := cmd.Output()
	require.Equal(t, 3, cmd.ProcessState.ExitCode(), "%v", err)
	require.Equal(t, "1000\n"+s.workspace+"\nauth.json\nconfig.toml\nno-terminal\n", string(out))
	s.noSandbox(t, cmd)

	cmd = s.subcommand("shell", "--workspace_access=ro", "--", "sh", "-c", "echo x >file || exit 7")
	require.Error(t, cmd.Run())
	require.Equal(t, 7, cmd.ProcessState.ExitCode())
	require.False(t, exists(s.workspace, "file"))
	s.noSandbox(t, cmd)

	for args, want := range map[string]string{"--provider=gemini": "there is no shell for provider gemini", "--image=mcp-agents/none:1": "mcp-agents images build none"} {
		said, err := s.subcommand("shell", args).CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(said), want)
	}
}

// On a terminal the shell has one, of its size, on both runtimes.
func TestShellOnATerminal(t *testing.T) {
	t.Run("local", func(t *testing.T) { shellOnATerminal(t, newSetting(t, "local", "")) })
	t.Run("docker", func(t *testing.T) { shellOnATerminal(t, newSetting(t, "docker", images.Codex(t))) })
}

func shellOnATerminal(t *testing.T, s *setting) {
	pty, path, err := console.NewPty()
	require.NoError(t, err)
	defer pty.Close()
	require.NoError(t, pty.Resize(console.WinSize{Height: 33, Width: 77}))
	tty, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	defer tty.Close()
	var screen lockedBuffer
	go func() { _, _ = io.Copy(&screen, pty) }() // ends with the terminal
	// Both terminals end lines by CR LF, so there are two CR.
	shows := func(text string) {
		t.Helper()
		wait.Until(t, func() bool { return strings.Contains(strings.ReplaceAll(screen.String(), "\r", ""), text) },
			"the screen does not show %q: %s", text, &screen)
	}
	cmd := s.subcommand("shell")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	write := func(line string) {
		_, err := io.WriteString(pty, line+"\r")
		require.NoError(t, err)
	}
	write("echo size=$(stty size)")
	shows("size=33 77")
	require.NoError(t, pty.Resize(console.WinSize{Height: 20, Width: 90}))
	write(`until [ "$(stty size)" = "20 90" ]; do sleep 0.1; done; echo now=$(stty size)`)
	shows("now=20 90")
	require.NotEmpty(t, s.running(t, cmd), "the check for what is left sees the sandbox")
	write("echo begun; sleep 600")
	shows("begun\n")                     // not the line that was typed
	_, err = io.WriteString(pty, "\x03") // the key reaches the command, not the program
	require.NoError(t, err)
	shows("^C")
	write("echo after=$((40+2))")
	shows("after=42")
	write("exit 5")
	_ = cmd.Wait()
	require.Equal(t, 5, cmd.ProcessState.ExitCode(), screen.String())
	s.noSandbox(t, cmd)
}

// A signal ends the shell's sandbox.
func TestShellEndsOnSIGTERM(t *testing.T) {
	s := newSetting(t, "docker", images.Codex(t))
	cmd := s.subcommand("shell", "--", "sh", "-c", "trap '' TERM; echo began; sleep 600")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	began := make([]byte, 6)
	_, err = io.ReadFull(out, began)
	require.NoError(t, err)
	require.NotEmpty(t, s.running(t, cmd))
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait()
	require.Equal(t, 143, cmd.ProcessState.ExitCode(), stderr.String())
	s.noSandbox(t, cmd)
}

// The CLI's own login is made in a sandbox, and stored where the CLI outside
// would have put it.
func TestLogin(t *testing.T) {
	s := newSetting(t, "docker", images.Codex(t))
	file := filepath.Join(s.login, "auth.json")
	require.NoError(t, os.Remove(file))
	login := func(input string, args ...string) (int, string) {
		cmd := s.subcommand("login", append([]string{"--"}, args...)...)
		cmd.Stdin = strings.NewReader(input)
		said, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(said)
	}
	status, said := login("\n", "--with-api-key")
	require.Equal(t, 1, status, said)
	require.NoFileExists(t, file, "what failed stores nothing")
	status, said = login("", "status", "--help")
	require.Equal(t, 1, status, said)
	require.Contains(t, said, "left no login")

	key := "sk-" + s.secret
	status, said = login(key+"\n", "--with-api-key")
	require.Zero(t, status, said)
	require.NotContains(t, said, key)
	require.Contains(t, said, "the login is stored")
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(b), key)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	cmd := exec.Command(built.agents, "doctor", "--image", s.image)
	cmd.Dir, cmd.Env = s.workspace, append(os.Environ(), "CODEX_HOME="+s.login)
	report, err := cmd.Output()
	require.NoError(t, err, string(report))
	for _, want := range []string{"ok       engine", "ok       image", "ok       login", "ok       workspace"} {
		require.Contains(t, string(report), want)
	}
}
