package acceptance

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/image"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox/docker"
	"mcpagents/internal/sandbox/wire"
	"mcpagents/internal/testkit/wait"
)

// ownEngine is an engine that the tests may stop and kill. It has a network
// namespace of its own, since a second engine in one takes the first one's
// bridge away, and a mount namespace in which /run/containerd is its own, since
// it would else share the machine's containerd.
type ownEngine struct {
	dir     string    // short: sockets are below it
	holder  *exec.Cmd // keeps the namespaces
	dockerd *exec.Cmd // nil while it is down
	log     *os.File
}

const (
	engineImage = "mcp-agents-test/tiny:1"
	// engineLife bounds what would be left if the tests are killed.
	engineLife = "7200"
)

// own is the engine of all tests, started by the first that needs it and ended
// by TestMain.
var own *ownEngine

// engineOfOurOwn returns the engine, up and with the image.
func engineOfOurOwn(t *testing.T) *ownEngine {
	t.Helper()
	for _, program := range []string{"dockerd", "containerd", "unshare", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil || os.Getuid() != 0 {
			t.Skipf("a test of a stopped engine starts one of its own, which takes root and %s", program)
		}
	}
	if own == nil {
		dir, err := os.MkdirTemp("", "mae")
		require.NoError(t, err)
		own = &ownEngine{dir: dir}
		require.NoError(t, os.WriteFile(filepath.Join(dir, "daemon.json"), []byte("{}"), 0o600))
		own.log, err = os.Create(filepath.Join(dir, "log"))
		require.NoError(t, err)
		own.holder = exec.Command("unshare", "--net", "--mount", "--propagation", "private", "sh", "-c",
			"mkdir -p /run/containerd && mount -t tmpfs none /run/containerd && echo ready && exec sleep "+engineLife)
		out, err := own.holder.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, own.holder.Start())
		ready := make([]byte, 6)
		_, err = io.ReadFull(out, ready)
		require.NoError(t, err, "the namespaces of the test's own engine")
		own.up(t)
		own.importImage(t)
	}
	own.up(t)
	return own
}

func (e *ownEngine) address() string { return "unix://" + filepath.Join(e.dir, "sock") }

// up starts the engine, if it is down, and waits until it answers.
func (e *ownEngine) up(t *testing.T) {
	t.Helper()
	if e.dockerd == nil {
		path := func(name string) string { return filepath.Join(e.dir, name) }
		e.dockerd = exec.Command("nsenter", "--net", "--mount", "--target", strconv.Itoa(e.holder.Process.Pid), "dockerd",
			"--config-file", path("daemon.json"), "--data-root", path("data"), "--exec-root", path("exec"), "--pidfile", path("pid"),
			"--host", e.address(), "--bridge=none", "--iptables=false", "--ip-forward=false", "--ip-masq=false")
		e.dockerd.Stdout, e.dockerd.Stderr = e.log, e.log
		e.dockerd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		require.NoError(t, e.dockerd.Start())
	}
	deadline := time.Now().Add(wait.Limit)
	for !e.answers(t) {
		if time.Now().After(deadline) {
			said, _ := os.ReadFile(e.log.Name())
			require.FailNow(t, "the test's own engine did not start", "%s", said[max(0, len(said)-4000):])
		}
		time.Sleep(50 * time.Millisecond) // an engine does not tell when it is up
	}
}

func (e *ownEngine) answers(t *testing.T) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err := engineClient(t, e.address()).Ping(ctx)
	return err == nil
}

// end ends the engine itself with a signal; containers and shims stay, if it
// leaves them.
func (e *ownEngine) end(sig syscall.Signal) {
	_ = e.dockerd.Process.Signal(sig)
	_ = e.dockerd.Wait()
	e.dockerd = nil
	// Its containerd ends with it, but leaves what keeps the next engine from
	// starting one.
	files := filepath.Join(e.dir, "exec", "containerd")
	for _, pid := range e.members() {
		if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); string(comm) == "containerd\n" {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			for exists("/proc", strconv.Itoa(pid)) {
				time.Sleep(10 * time.Millisecond) // it is no child of ours
			}
		}
	}
	for _, name := range []string{"containerd.pid", "containerd.sock", "containerd.sock.ttrpc"} {
		_ = os.Remove(filepath.Join(files, name))
	}
}

// importImage makes an image of nothing but sandbox-init and the fake Codex.
func (e *ownEngine) importImage(t *testing.T) {
	t.Helper()
	initPath := filepath.Join(built.dir, "sandbox-init")
	build := exec.Command("go", "build", "-o", initPath, "mcpagents/cmd/sandbox-init")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, dir := range []string{"tmp/", "home/", "usr/", "usr/local/", "usr/local/bin/", "usr/local/sbin/"} {
		require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}))
	}
	for name, path := range map[string]string{"usr/local/bin/sandbox-init": initPath, "usr/local/sbin/codex": built.fakeCodex} {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(data))}))
		_, err = w.Write(data)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	answer, err := engineClient(t, e.address()).ImageImport(t.Context(), image.ImportSource{Source: &b, SourceName: "-"}, engineImage,
		image.ImportOptions{Changes: []string{fmt.Sprintf("LABEL %s=%d", docker.LabelProtocol, wire.Version)}})
	require.NoError(t, err)
	defer answer.Close()
	said, err := io.ReadAll(answer)
	require.NoError(t, err)
	require.NotContains(t, string(said), "error")
}

// close ends the engine, its containers, and whatever is in its namespaces.
func (e *ownEngine) close() {
	if e.dockerd != nil {
		e.end(syscall.SIGTERM)
	}
	for deadline := time.Now().Add(wait.Limit); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		members := e.members()
		for _, pid := range members {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(members) == 0 {
			break
		}
	}
	_ = e.holder.Process.Kill()
	_ = e.holder.Wait()
	_ = e.log.Close()
	if err := os.RemoveAll(e.dir); err != nil {
		fmt.Fprintln(os.Stderr, "the test's own engine:", err)
	}
}

// members are the processes in the engine's mount namespace, without the one
// that keeps it: containerd and the shims, with which their containers end.
func (e *ownEngine) members() []int {
	holder := strconv.Itoa(e.holder.Process.Pid)
	namespace, err := os.Readlink("/proc/" + holder + "/ns/mnt")
	if err != nil {
		return nil
	}
	var pids []int
	links, _ := filepath.Glob("/proc/[0-9]*/ns/mnt")
	for _, link := range links {
		pid := strings.Split(link, "/")[2]
		if ns, err := os.Readlink(link); err == nil && ns == namespace && pid != holder {
			n, _ := strconv.Atoi(pid)
			pids = append(pids, n)
		}
	}
	return pids
}
