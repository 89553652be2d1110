package local

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"log/slog"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/guest"
	"mcpagents/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	sandboxtest.Main(func() (sandbox.Runtime, error) { return New("/proc/self/exe", "sandbox-init") })
	os.Exit(m.Run())
}

func newRuntime(t *testing.T) *Runtime {
	rt, err := New("/proc/self/exe", "sandbox-init")
	require.NoError(t, err)
	return rt
}

func spec(t *testing.T) sandbox.Spec {
	return sandbox.Spec{Provider: "codex", HomeRoot: t.TempDir(), HomePrefix: "mcp-agents-codex-", Grace: 300 * time.Millisecond}
}

func TestRuntime(t *testing.T) {
	sandboxtest.Run(t, sandboxtest.Subject{Runtime: newRuntime(t), Spec: spec, Left: homes})
}

func homes(spec sandbox.Spec) []string {
	found, _ := filepath.Glob(filepath.Join(spec.HomeRoot, spec.HomePrefix+"*"))
	return found
}

// killedInit opens a sandbox, starts a daemon in it, and kills its init.
func killedInit(t *testing.T, rt *Runtime, sp sandbox.Spec) (*sandbox.Sandbox, guest.Process) {
	box, err := sandbox.Open(t.Context(), rt, sp, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	_, err = box.Spawn(t.Context(), sandbox.Command{Argv: []string{"sh", "-c", "trap '' TERM HUP; echo $$ >" + sp.HomeRoot + "/pid; exec sleep 300"},
		Env: rt.Environ(sp), Dir: "/"})
	require.NoError(t, err)
	var p guest.Process
	require.Eventually(t, func() bool {
		b, _ := os.ReadFile(sp.HomeRoot + "/pid")
		pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil {
			return false
		}
		p, err = guest.ReadProcess(pid)
		return err == nil
	}, 20*time.Second, 5*time.Millisecond)
	init, err := guest.ReadProcess(box.Welcome().PID)
	require.NoError(t, err)
	require.NoError(t, init.Signal(unix.SIGKILL))
	<-box.Ended()
	return box, p
}

func alive(p guest.Process) bool {
	now, err := guest.ReadProcess(p.PID)
	return err == nil && now.Start == p.Start && now.State != 'Z'
}

// A command may kill init, as it has the same user: the front end finds what
// it left by the marker, and removes the home.
func TestCloseAfterInitWasKilled(t *testing.T) {
	rt, sp := newRuntime(t), spec(t)
	box, p := killedInit(t, rt, sp)
	require.True(t, alive(p), "the control: nothing else ends it")
	require.NotEmpty(t, homes(sp))
	require.NoError(t, box.Close(t.Context()))
	require.False(t, alive(p))
	require.Empty(t, homes(sp))
}

// The private home holds a login: it goes even when the time for the end is up.
func TestCloseWithoutTime(t *testing.T) {
	rt, sp := newRuntime(t), spec(t)
	box, p := killedInit(t, rt, sp)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := box.Close(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, homes(sp))
	require.Eventually(t, func() bool { return !alive(p) }, 20*time.Second, 5*time.Millisecond)
}

// The next start's sweep ends what a killed init and a killed front end left,
// and touches no sandbox that lives.
func TestSweep(t *testing.T) {
	rt, dead, living := newRuntime(t), spec(t), spec(t)
	box, p := killedInit(t, rt, dead)
	t.Cleanup(func() { require.NoError(t, box.Close(context.WithoutCancel(t.Context()))) })
	other, err := sandbox.Open(t.Context(), rt, living, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, other.Close(context.WithoutCancel(t.Context()))) })
	q, err := other.Spawn(t.Context(), sandbox.Command{Argv: []string{"sleep", "300"}, Env: rt.Environ(living), Dir: "/"})
	require.NoError(t, err)
	young := filepath.Join(living.HomeRoot, living.HomePrefix+"young")
	old := filepath.Join(living.HomeRoot, living.HomePrefix+"old")
	require.NoError(t, os.Mkdir(young, 0o700))
	require.NoError(t, os.Mkdir(old, 0o700))
	long := time.Now().Add(-unlockedAge - time.Minute)
	require.NoError(t, os.Chtimes(old, long, long))

	lines, err := rt.Sweep(t.Context(), true)
	require.NoError(t, err)
	require.Contains(t, lines, "process "+strconv.Itoa(p.PID)+": its sandbox-init is gone")
	require.True(t, alive(p), "a dry run only says")
	require.NotEmpty(t, homes(dead))

	_, err = rt.Sweep(t.Context(), false)
	require.NoError(t, err)
	require.False(t, alive(p))
	require.Empty(t, homes(dead))
	require.NoDirExists(t, old)
	require.DirExists(t, young, "without a lock it may be in the making")
	running, err := guest.ReadProcess(q.PID())
	require.NoError(t, err)
	require.True(t, alive(running), "another's sandbox")
	require.DirExists(t, other.Welcome().Home)
}

// A process of another pid namespace (in a container) carries a marker whose
// pid means nothing here: it must not look abandoned.
func TestMarkOfAnotherNamespace(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make a pid namespace without a user namespace")
	}
	for name, flags := range map[string]uintptr{"here": 0, "elsewhere": unix.CLONE_NEWPID} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("sleep", "300")
			cmd.Env = []string{guest.Marker + "=x:1:1"}
			cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: flags}
			require.NoError(t, cmd.Start())
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			m, ok := readMark(cmd.Process.Pid)
			require.Equal(t, flags == 0, ok)
			if ok {
				require.True(t, initGone(m))
			}
		})
	}
}

func TestHomeRootMustBeReal(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(t.TempDir(), link))
	_, err := makeHome(link, "x-")
	require.ErrorContains(t, err, "not a real directory")
	h, err := makeHome(filepath.Join(dir, "new"), "x-")
	require.NoError(t, err)
	for _, path := range []string{filepath.Join(dir, "new"), h.path} {
		st, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), st.Mode().Perm(), path)
	}
	require.False(t, isStale(h.path), "it is held")
	require.NoError(t, h.lock.Close())
	require.True(t, isStale(h.path))
	require.NoError(t, h.remove())
}

// A front end that is killed while it makes a home, or an init while it removes
// one, leaves a home without a lock: the next start takes it, but never one
// that is being made.
func TestUnownedHomesAreSwept(t *testing.T) {
	root := t.TempDir()
	rt, err := New("/nowhere")
	require.NoError(t, err)
	rt.AddRoot(root, "x-")
	cutShort := filepath.Join(root, guest.UnownedPrefix+"1")
	require.NoError(t, os.Mkdir(cutShort, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(cutShort, "auth.json"), []byte("{}"), 0o600))
	making, err := lockRoot(root, unix.LOCK_SH)
	require.NoError(t, err)
	_, err = rt.Sweep(t.Context(), false)
	require.NoError(t, err)
	require.DirExists(t, cutShort, "one is being made")
	require.NoError(t, making.Close())
	_, err = rt.Sweep(t.Context(), true)
	require.NoError(t, err)
	require.DirExists(t, cutShort, "a dry run")
	lines, err := rt.Sweep(t.Context(), false)
	require.NoError(t, err)
	require.NoDirExists(t, cutShort)
	require.NotEmpty(t, lines)
}
