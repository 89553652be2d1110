package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/guest"
	"mcpagents/internal/sandbox/wire"
)

func openBox(t *testing.T, rt *Runtime, spec sandbox.Spec) *sandbox.Sandbox {
	if spec.Grace == 0 {
		spec.Grace = 500 * time.Millisecond
	}
	box, err := sandbox.Open(t.Context(), rt, spec, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		require.NoError(t, box.Close(ctx))
	})
	return box
}

func script(rt *Runtime, spec sandbox.Spec, text string) sandbox.Command {
	return sandbox.Command{Argv: []string{"bash", "-c", text}, Env: rt.Environ(spec), Dir: "/"}
}

// What a command finds of itself and its surroundings.
func TestInside(t *testing.T) {
	rt, spec := testRuntime(t)
	box := openBox(t, rt, spec)
	for name, tt := range map[string]struct{ script, want string }{
		"privileges":      {`grep -E '^(CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\t'`, "CapInh:0000000000000000\nCapPrm:0000000000000000\nCapEff:0000000000000000\nCapBnd:0000000000000000\nCapAmb:0000000000000000\nNoNewPrivs:1\nSeccomp:2\n"},
		"identity":        {`id -u; id -g; echo $HOME $USER $LOGNAME`, "1000\n1000\n/home/agent agent agent\n"},
		"root is closed":  {`touch /x /usr/x /etc/x /var/x 2>&1 | grep -c 'Read-only file system'`, "4\n"},
		"home":            {`stat -c '%a %u:%g' $HOME; echo 'echo ran' >$HOME/x && chmod +x $HOME/x && $HOME/x`, "700 1000:1000\nran\n"},
		"tmp":             {`stat -c %a /tmp; echo 'echo ran' >/tmp/x && chmod +x /tmp/x && /tmp/x`, "1777\nran\n"},
		"no set-uid":      {`grep -E ' (/tmp|/home/agent) ' /proc/mounts | grep -c 'nosuid,nodev'`, "2\n"},
		"no socket":       {`find / -xdev -name 'docker*.sock' 2>/dev/null; ls /var/run/docker.sock /run/docker.sock 2>/dev/null; echo none`, "none\n"},
		"no network":      {`ls /sys/class/net`, "lo\n"},
		"pid 1 is ours":   {`tr '\0' ' ' </proc/1/cmdline | cut -d' ' -f1`, "/usr/local/bin/sandbox-init\n"},
		"pid 1 is closed": {`(cat /proc/1/environ || head -c 1 /proc/1/mem || ls /proc/1/fd/ || echo forged >/proc/1/fd/1) 2>&1 | grep -vc 'Permission denied'; echo done`, "0\ndone\n"},
		"no mark":         {`env | grep -c ` + guest.Marker, "0\n"},
		"no descriptors":  {`ls /proc/self/fd | tr '\n' ' '`, "0 1 2 3 "},
		"pid 1 lives on":  {`for s in $(seq 1 64); do kill -$s 1; done; echo alive`, "alive\n"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := box.Run(t.Context(), script(rt, spec, tt.script))
			require.NoError(t, err)
			require.Equal(t, tt.want, string(out.Stdout), string(out.Stderr))
		})
	}
}

// fill forks children that ignore TERM until the process limit is reached, and
// says what the system said.
const fill = `
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
try:
    while True:
        if os.fork() == 0:
            time.sleep(300)
            os._exit(0)
except OSError as e:
    print(e.strerror, flush=True)
`

const limitReached = "Resource temporarily unavailable\n" // EAGAIN, and no trouble of the host's

func fullSandbox(t *testing.T, then string) (*sandbox.Sandbox, *sandbox.Process) {
	rt, spec := testRuntime(t)
	spec.Limits.PIDs = 64
	box := openBox(t, rt, spec)
	p, err := box.Spawn(t.Context(), sandbox.Command{Argv: []string{"python3", "-c", fill + then}, Env: rt.Environ(spec), Dir: "/"})
	require.NoError(t, err)
	line := make([]byte, len(limitReached))
	_, err = io.ReadFull(p.Stdout(), line)
	require.NoError(t, err)
	require.Equal(t, limitReached, string(line))
	return box, p
}

// Under a full process limit init, which needs no new thread, kills what the
// command left, sends its output and the exit, and ends.
func TestExitUnderAFullProcessLimit(t *testing.T) {
	box, p := fullSandbox(t, "sys.stdout.write('x' * 5000000); sys.stdout.flush(); os._exit(3)")
	out, err := io.ReadAll(p.Stdout())
	require.NoError(t, err)
	require.Len(t, out, 5_000_000)
	exit, err := p.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, exit.Code)
	begin := time.Now()
	require.NoError(t, box.Close(t.Context()))
	require.Less(t, time.Since(begin), 5*time.Second)
}

// The same with the limit still full when the sandbox is closed.
func TestCloseUnderAFullProcessLimit(t *testing.T) {
	box, p := fullSandbox(t, "time.sleep(300)")
	begin := time.Now()
	require.NoError(t, box.Close(t.Context()))
	require.Less(t, time.Since(begin), 5*time.Second)
	exit, err := p.Wait(t.Context())
	require.NoError(t, err, "the exit came")
	require.Equal(t, 9, exit.Signal)
}

// Neither a login nor a variable of the command can be seen by who may look at
// the engine, at the image, at its log or at the machine's processes.
func TestSecretsAreNowhere(t *testing.T) {
	rt, spec := testRuntime(t)
	box := openBox(t, rt, spec)
	secret := fmt.Sprintf("sentinel-%d", time.Now().UnixNano())
	require.NoError(t, box.PutFile(wire.File{Name: "auth.json", Data: []byte(secret)}))
	cmd := script(rt, spec, `cat $HOME/.codex/auth.json; printf %s "$TOKEN"; read x`)
	cmd.Env = append(cmd.Env, "TOKEN="+secret)
	cmd.Stdin = true
	p, err := box.Spawn(t.Context(), cmd)
	require.NoError(t, err)
	got := make([]byte, 2*len(secret))
	_, err = io.ReadFull(p.Stdout(), got)
	require.NoError(t, err)
	require.Equal(t, secret+secret, string(got), "the control: the command has both")

	e, err := rt.connect(t.Context())
	require.NoError(t, err)
	info, raw, err := e.ContainerInspectWithRaw(t.Context(), box.ID(), false)
	require.NoError(t, err)
	require.Contains(t, string(raw), box.ID())
	require.NotContains(t, string(raw), secret)
	require.Empty(t, info.LogPath)
	_, err = e.ContainerLogs(t.Context(), box.ID(), container.LogsOptions{ShowStdout: true})
	require.ErrorContains(t, err, "logging driver", "the engine keeps no log of it")
	history, err := e.ImageHistory(t.Context(), spec.Image)
	require.NoError(t, err)
	b, err := json.Marshal(history)
	require.NoError(t, err)
	require.NotContains(t, string(b), secret)
	for _, pattern := range []string{"/proc/[0-9]*/cmdline", "/var/lib/docker/containers/" + box.ID() + "/*", "/var/log/*dockerd*.log"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			if b, err := os.ReadFile(file); err == nil {
				require.False(t, bytes.Contains(b, []byte(secret)), file)
			}
		}
	}
}

// narrowed is the engine of rt as seen through a proxy that lists only the
// named containers, made older by age: no test may sweep its neighbours'.
func narrowed(t *testing.T, rt *Runtime, age time.Duration, ids ...string) *Runtime {
	e, err := rt.connect(t.Context())
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "engine"}) },
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(e.at.host, "unix://"))
		}},
		ModifyResponse: func(r *http.Response) error {
			if !strings.HasSuffix(r.Request.URL.Path, "/containers/json") {
				return nil
			}
			var all, ours []map[string]any
			if err := json.NewDecoder(r.Body).Decode(&all); err != nil {
				return err
			}
			for _, c := range all {
				if slices.Contains(ids, c["Id"].(string)) {
					c["Created"] = time.Now().Add(-age).Unix()
					ours = append(ours, c)
				}
			}
			b, err := json.Marshal(ours)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
			r.Header.Set("Content-Length", strconv.Itoa(len(b)))
			return err
		},
	}
	socket := filepath.Join(socketDir(t), "engine.sock")
	stop := serveAt(t, socket, proxy)
	t.Cleanup(stop)
	seen, err := New("unix://" + socket)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, seen.Close()) })
	return seen
}

// Sweep removes what never started once it is two minutes old, says the same
// in a dry run, and touches neither what runs nor what is not ours.
func TestSweep(t *testing.T) {
	rt, spec := testRuntime(t)
	e, err := rt.connect(t.Context())
	require.NoError(t, err)
	create := func(labels map[string]string) string {
		made, err := e.ContainerCreate(t.Context(), &container.Config{Image: spec.Image, Labels: labels}, &container.HostConfig{NetworkMode: "none"}, nil, nil, "")
		require.NoError(t, err)
		t.Cleanup(func() {
			_ = e.ContainerRemove(context.WithoutCancel(t.Context()), made.ID, container.RemoveOptions{Force: true})
		})
		return made.ID
	}
	ours, foreign := create(map[string]string{LabelSandbox: "sweep-test"}), create(map[string]string{"another": "program"})
	running := openBox(t, rt, spec)
	there := func(id string) bool { _, err := e.ContainerInspect(t.Context(), id); return !gone(err) }
	young := narrowed(t, rt, sweepAge-10*time.Second, ours, foreign, running.ID())
	old := narrowed(t, rt, sweepAge+10*time.Second, ours, foreign, running.ID())

	lines, err := young.Sweep(t.Context(), false)
	require.NoError(t, err)
	require.Empty(t, lines, "it may be about to start")
	require.True(t, there(ours))
	lines, err = old.Sweep(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, []string{"container " + ours[:12] + ": created"}, lines)
	require.True(t, there(ours), "a dry run only says")
	said, err := old.Sweep(t.Context(), false)
	require.NoError(t, err)
	require.Equal(t, lines, said)
	require.False(t, there(ours))
	require.True(t, there(foreign) && there(running.ID()))
	require.NoError(t, running.Err())
}
