package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpagents/internal/testkit/wait"

	"github.com/stretchr/testify/require"
)

// lessor runs the helper commands for one session, for a process that the test
// can end.
type lessor struct {
	t       *testing.T
	session string
	image   string
	user    *exec.Cmd // with whose end the lease ends
}

func newLessor(t *testing.T) *lessor {
	t.Helper()
	browserSetting(t) // or skip
	l := &lessor{t: t, session: fmt.Sprintf("%s-%d", t.Name(), time.Now().UnixNano()), image: os.Getenv("MCP_AGENTS_TEST_IMAGE_CHROMIUM")}
	l.user = exec.Command("sleep", "600")
	require.NoError(t, l.user.Start())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = l.user.Wait() }() // at once: an unreaped process counts as alive
	t.Cleanup(func() {
		_ = l.user.Process.Kill()
		<-ended
		wait.Until(t, func() bool { return len(l.keepers()) == 0 }, "keepers are left: %v", l.keepers())
	})
	return l
}

// run runs a command and returns its exit status and output.
func (l *lessor) run(args ...string) (status int, out, said string) {
	l.t.Helper()
	cmd := exec.Command(built.agents, append([]string{"lease", "docker", "--image", l.image, "--browser_network", "none"}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		require.IsType(l.t, &exec.ExitError{}, err)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

func (l *lessor) acquire(port int, more ...string) (status int, out, said string) {
	l.t.Helper()
	return l.run(append([]string{"acquire", "--session", l.session, "--local-cdp-port", strconv.Itoa(port), "--viewport", "800x600",
		"--parent-pid", strconv.Itoa(l.user.Process.Pid)}, more...)...)
}

// keepers are the processes that hold a browser for the session.
func (l *lessor) keepers() []string {
	s := &setting{run: "no such run", workspace: l.session}
	return s.marked(l.user.Process.Pid)
}

// identity is what the control port on this machine says.
func (l *lessor) identity(port int) string {
	l.t.Helper()
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get(host(port) + "json/version")
	require.NoError(l.t, err)
	defer r.Body.Close()
	var v struct {
		Address string `json:"webSocketDebuggerUrl"`
	}
	require.NoError(l.t, json.NewDecoder(r.Body).Decode(&v))
	return v.Address
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

var readyRecord = regexp.MustCompile(`^record_version=1\nstate=ready\ngeneration=(\S+)\nlocal_cdp_port=(\d+)\nbrowser_url=http://127\.0\.0\.1:(\d+)\n$`)

// The commands lend a browser that this machine reaches on the port that was
// asked for, and take it back.
func TestBrowserLeaseCommands(t *testing.T) {
	l := newLessor(t)
	port := freePort(t)
	status, out, said := l.acquire(port)
	require.Zero(t, status, said)
	record := readyRecord.FindStringSubmatch(out)
	require.NotNil(t, record, out)
	require.Equal(t, strconv.Itoa(port), record[2])
	require.Equal(t, record[2], record[3])
	require.Contains(t, l.identity(port), fmt.Sprintf("ws://127.0.0.1:%d/devtools/browser/", port))
	require.NotEmpty(t, l.keepers(), "the look sees them")

	for _, tt := range []struct {
		args []string
		want int
	}{
		{[]string{"status", "--session", l.session}, 0},
		{[]string{"status", "--session", l.session, "--generation", record[1]}, 0},
		{[]string{"status", "--session", l.session, "--generation", "another"}, 69},
		{[]string{"status", "--session", "another"}, 69},
		{[]string{"release", "--session", l.session, "--generation", "another", "--reason", "idle"}, 0},
		{[]string{"status", "--session", l.session}, 0},
		{[]string{"release", "--session", l.session, "--generation", record[1], "--reason", "shutdown"}, 0},
		{[]string{"status", "--session", l.session}, 69},
		{[]string{"release", "--session", l.session, "--reason", "shutdown"}, 0},
		{[]string{"status"}, 2},
	} {
		status, _, said := l.run(tt.args...)
		require.Equal(t, tt.want, status, "%v: %s", tt.args, said)
	}
	_, err := net.DialTimeout("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), time.Second)
	require.Error(t, err, "the port is closed")
}

func TestBrowserLeaseRefusals(t *testing.T) {
	l := newLessor(t)
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	status, out, said := l.acquire(taken.Addr().(*net.TCPAddr).Port)
	require.Equal(t, 75, status, said)
	require.Empty(t, out)
	status, out, said = l.acquire(freePort(t), "--app-port", strconv.Itoa(freePort(t)))
	require.Equal(t, 69, status, said)
	require.Empty(t, out)
	require.Contains(t, said, "GUI not verified")
	require.Contains(t, said, "dev server not reachable")
	status, _, said = l.acquire(freePort(t), "--docker-host", "unix:///nowhere/docker.sock")
	require.Equal(t, 69, status, said)
	require.Contains(t, said, "GUI not verified")
}

// The lease ends with its user, and a second acquire of a session replaces the
// first.
func TestBrowserLeaseEndsWithItsUser(t *testing.T) {
	l := newLessor(t)
	first, second := freePort(t), freePort(t)
	status, _, said := l.acquire(first)
	require.Zero(t, status, said)
	one := l.identity(first)
	status, _, said = l.acquire(second)
	require.Zero(t, status, said)
	require.NotEqual(t, one, strings.Replace(l.identity(second), strconv.Itoa(second), strconv.Itoa(first), 1))
	_, err := net.DialTimeout("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(first)), time.Second)
	require.Error(t, err, "the first is gone")
	require.NoError(t, l.user.Process.Kill())
	wait.Until(t, func() bool { return len(l.keepers()) == 0 })
	status, _, _ = l.run("status", "--session", l.session)
	require.Equal(t, 69, status)
}
