package acceptance

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"mcpagents/internal/testkit/wait"

	"github.com/stretchr/testify/require"
)

// sshBox is a box that the documented helper reaches by a fake ssh.
type sshBox struct {
	dir, helper, tool string
}

func newSSHBox(t *testing.T) *sshBox {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("the documented helper is a bash script, and there is no bash")
	}
	// The path of a unix socket is short.
	dir, err := os.MkdirTemp("", "ssh")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Symlink(buildOnce(t, "fakessh"), filepath.Join(dir, "ssh")))
	// As Debian installs it: a script that has the browser as its child.
	real := filepath.Join(dir, "real", "chromium-headless-shell")
	require.NoError(t, os.Mkdir(filepath.Dir(real), 0o755))
	require.NoError(t, os.Symlink(buildOnce(t, "fakessh"), real))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "chromium-headless-shell"), []byte("#!/bin/sh -e\n"+real+` "$@"`+"\n"), 0o755))
	helper, err := filepath.Abs("../../../docs/examples/lease-over-ssh")
	require.NoError(t, err)
	_, tool := fakeBrowserParts(t)
	return &sshBox{dir, helper, tool}
}

// borrow starts a front end that borrows browsers of the box.
func (x *sshBox) borrow(t *testing.T, more ...string) *borrower {
	t.Helper()
	s := newSetting(t, "local", "")
	b := &borrower{leases: filepath.Join(x.dir, "l")}
	s.env = append(s.env, "PATH="+x.dir+":"+os.Getenv("PATH"), "LEASE_STATE="+b.leases, "FAKE_SSH_LOG="+filepath.Join(x.dir, "log"), "TMPDIR="+x.dir)
	s.args = append([]string{"--provider", "browser", "--browser_lease_command", x.helper + " me@box", "--browser_command", x.tool}, more...)
	b.client = s.start(t)
	b.initialize()
	b.answer(b.request("tools/list", map[string]any{}))
	return b
}

// profiles are the browsers' profiles on the box.
func (x *sshBox) profiles(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(x.dir, "tmp.*"))
	require.NoError(t, err)
	return found
}

func (x *sshBox) requireClean(t *testing.T, b *borrower) {
	t.Helper()
	_, l := b.clean(t, wait.Limit)
	require.Zero(t, l.count(), l.String())
	require.Empty(t, x.profiles(t))
}

func TestLeaseOverSSH(t *testing.T) {
	t.Run("a browser, given back when unused, and another one", func(t *testing.T) {
		x := newSSHBox(t)
		app, err := net.Listen("tcp4", "127.0.0.1:0")
		require.NoError(t, err)
		defer app.Close()
		port := strconv.Itoa(app.Addr().(*net.TCPAddr).Port)
		b := x.borrow(t, "--browser_idle_timeout", "1", "--browser_app_port", port)
		first := b.answer(b.call("")).text()
		require.Contains(t, first, "/devtools/browser/id-")
		require.Len(t, x.profiles(t), 1, "the observer sees a profile")
		wait.Until(t, func() bool { return len(b.lent()) == 0 && len(x.profiles(t)) == 0 })
		second := b.answer(b.call("")).text()
		require.Contains(t, second, "/devtools/browser/id-")
		require.NotEqual(t, first, second)
		b.begin()
		closeInput(b.client)
		require.Equal(t, 0, b.exit())
		x.requireClean(t, b)
		log, err := os.ReadFile(filepath.Join(x.dir, "log"))
		require.NoError(t, err)
		require.Contains(t, string(log), "-R 127.0.0.1:"+port+":127.0.0.1:"+port+" me@box")
		require.NotContains(t, b.stderr.String(), "nonfatal")
	})
	for name, sig := range map[string]syscall.Signal{"the front end gets SIGKILL": syscall.SIGKILL, "the front end gets SIGTERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			x := newSSHBox(t)
			b := x.borrow(t)
			require.Contains(t, b.answer(b.call("")).text(), "/devtools/browser/id-")
			b.begin()
			sends(sig)(b)
			require.Equal(t, 128+int(sig), b.exit())
			x.requireClean(t, b)
		})
	}
	t.Run("the connection breaks", func(t *testing.T) {
		x := newSSHBox(t)
		b := x.borrow(t)
		require.Contains(t, b.answer(b.call("")).text(), "/devtools/browser/id-")
		b.killOne(" -M ", syscall.SIGKILL)
		wait.Until(t, func() bool { return len(x.profiles(t)) == 0 }, "the box cleans up")
		require.Regexp(t, "^browser_lease_replaced .*call was not executed", b.toldOf(b.answer(b.call(""))))
		require.Contains(t, b.answer(b.call("")).text(), "/devtools/browser/id-")
		b.begin()
		closeInput(b.client)
		require.Equal(t, 0, b.exit())
		x.requireClean(t, b)
	})
	for _, c := range []struct {
		name, env, told string
		args            []string
	}{
		{"no box", "FAKE_SSH=refuse", "^browser_unavailable .*no browser box available\nLease helper: cannot reach me@box: .*Connection refused", nil},
		{"no browser on the box", "LEASE_BROWSER=no-such-browser", "^browser_provisioning_failed .*no-such-browser did not start on me@box", nil},
		{"nothing to show", "X=", "^browser_dev_server_unreachable GUI not verified: dev server not reachable at http://127.0.0.1:1$", []string{"--browser_app_port", "1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			name, value, _ := strings.Cut(c.env, "=")
			t.Setenv(name, value)
			x := newSSHBox(t)
			b := x.borrow(t, c.args...)
			require.Regexp(t, "(?s)"+c.told, b.toldOf(b.answer(b.call(""))))
			b.begin()
			closeInput(b.client)
			require.Equal(t, 0, b.exit())
			x.requireClean(t, b)
		})
	}
}

// The helper tells its caller when the port is taken, and knows its own leases.
func TestLeaseOverSSHProtocol(t *testing.T) {
	x := newSSHBox(t)
	run := func(args ...string) (int, string) {
		cmd := exec.Command(x.helper, append([]string{"me@box"}, args...)...)
		cmd.Env = append(os.Environ(), "PATH="+x.dir+":"+os.Getenv("PATH"), "LEASE_STATE="+filepath.Join(x.dir, "l"), "TMPDIR="+x.dir)
		out, _ := cmd.Output()
		return cmd.ProcessState.ExitCode(), string(out)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	acquire := []string{"acquire", "--session", "s", "--local-cdp-port", port, "--viewport", "800x600"}
	code, _ := run(acquire...)
	require.Equal(t, 75, code)
	require.NoError(t, l.Close())
	code, out := run(acquire...)
	require.Equal(t, 0, code)
	_, generation, _ := strings.Cut(out, "generation=")
	generation, _, _ = strings.Cut(generation, "\n")
	code, _ = run("status", "--session", "s", "--generation", generation)
	require.Equal(t, 0, code)
	for _, args := range [][]string{{"--session", "other", "--generation", generation}, {"--session", "s", "--generation", "../l"}, {"--session", "s", "--generation", "lease.none"}} {
		code, _ = run(append([]string{"status"}, args...)...)
		require.Equal(t, 69, code, "%v", args)
	}
	code, _ = run("release", "--session", "s", "--generation", generation, "--reason", "idle")
	require.Equal(t, 0, code)
	code, _ = run("release", "--session", "s", "--generation", generation, "--reason", "idle")
	require.Equal(t, 69, code)
	require.Empty(t, x.profiles(t))
}
