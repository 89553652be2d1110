package docker

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/tail"
	"mcpagents/internal/selfcontainer"
	"mcpagents/internal/testkit/images"
)

// frontEnd is mcp-agents in a container, as `docker run -i` starts it.
type frontEnd struct {
	t      *testing.T
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr *tail.Buffer
}

// frontEndBinary is a static mcp-agents, from the build or made here.
func frontEndBinary(t *testing.T) string {
	if dir := os.Getenv("MCP_AGENTS_TEST_BIN"); dir != "" {
		return filepath.Join(dir, "mcp-agents")
	}
	bin := filepath.Join(t.TempDir(), "mcp-agents")
	build := exec.Command("go", "build", "-o", bin, "mcpagents/cmd/mcp-agents")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	return bin
}

// runFrontEnd starts it with further arguments of docker run and its own.
func runFrontEnd(t *testing.T, bin, image string, docker, args []string) *frontEnd {
	argv := []string{"run", "-i", "--rm", "--user", "0:0", "-e", "HOME=/root", "--entrypoint", "/mcp-agents",
		"-v", bin + ":/mcp-agents:ro", "-v", "/var/run/docker.sock:/var/run/docker.sock"}
	argv = append(append(argv, docker...), image, "--provider", "codex", "--image", image, "--network", "none",
		"--model_base_url", "http://127.0.0.1:9/v1")
	cmd := exec.Command("docker", append(argv, args...)...)
	f := &frontEnd{t: t, stderr: &tail.Buffer{}}
	cmd.Stderr = f.stderr
	var err error
	f.stdin, err = cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	f.stdout = bufio.NewReader(stdout)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = f.stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Logf("the front end ended with %v: %s", err, f.stderr)
		}
	})
	f.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	return f
}

func (f *frontEnd) send(line string) {
	_, err := io.WriteString(f.stdin, line+"\n")
	require.NoError(f.t, err)
}

// answer returns the answer to a request as text.
func (f *frontEnd) answer(id int) string {
	for {
		line, err := f.stdout.ReadBytes('\n')
		require.NoError(f.t, err, f.stderr.String())
		var m struct {
			ID     json.Number     `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		if json.Unmarshal(line, &m) == nil && m.ID.String() == fmt.Sprint(id) && (m.Result != nil || m.Error != nil) {
			return string(line)
		}
	}
}

// sibling waits for the sandbox that has a mount at target.
func sibling(t *testing.T, rt *Runtime, target string, f *frontEnd) container.InspectResponse {
	e, err := rt.connect(t.Context())
	require.NoError(t, err)
	var found container.InspectResponse
	require.Eventually(t, func() bool {
		list, err := e.ours(context.Background())
		if err != nil {
			return false
		}
		for _, c := range list {
			for _, m := range c.Mounts {
				if m.Destination == target {
					found, err = e.ContainerInspect(context.Background(), c.ID)
					return err == nil && found.State.Running
				}
			}
		}
		return false
	}, 40*time.Second, 100*time.Millisecond, "no sandbox with %s: %s", target, f.stderr)
	return found
}

// A front end in a container gives its sandboxes what it has itself, by the
// paths of the engine's machine.
func TestFrontEndInContainer(t *testing.T) {
	image := images.Codex(t)
	rt, err := New("unix:///var/run/docker.sock")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	bin := frontEndBinary(t)
	workspace := func(t *testing.T) string {
		dir := socketDir(t)
		if os.Geteuid() == 0 {
			require.NoError(t, os.Chown(dir, 1000, 1000))
		}
		return dir
	}
	for _, tt := range []struct {
		name     string
		target   func(ws string) string
		access   string
		readOnly bool
	}{
		{"the same path", func(ws string) string { return ws }, "", false},
		{"another path", func(ws string) string { return "/work" + ws }, "", false},
		{"read-only outside is read-only inside", func(ws string) string { return "/work" + ws }, ":ro", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ws := workspace(t)
			target := tt.target(ws)
			f := runFrontEnd(t, bin, image, []string{"--network", "none", "-v", ws + ":" + target + tt.access, "-w", target}, nil)
			got := sibling(t, rt, target, f)
			require.Len(t, got.Mounts, 1)
			require.Equal(t, ws, got.Mounts[0].Source)
			require.Equal(t, tt.readOnly, !got.Mounts[0].RW)
			if os.Geteuid() == 0 {
				require.Equal(t, "1000:1000", got.Config.User, "the workspace's owner")
			}
			f.answer(1)
		})
	}
	t.Run("a network shared with another container", func(t *testing.T) {
		ws, others := workspace(t), workspace(t)
		target := "/work" + ws
		out, err := exec.Command("docker", "run", "-d", "--rm", "--network", "none", "-v", others+":"+target, "--entrypoint", "sleep", image, "300").Output()
		require.NoError(t, err)
		id := strings.TrimSpace(string(out))
		t.Cleanup(func() { require.NoError(t, exec.Command("docker", "rm", "-f", id).Run()) })
		f := runFrontEnd(t, bin, image, []string{"--network", "container:" + id, "-v", ws + ":" + target, "-w", target}, nil)
		require.Equal(t, ws, sibling(t, rt, target, f).Mounts[0].Source)
	})
	t.Run("a directory that is not shared", func(t *testing.T) {
		f := runFrontEnd(t, bin, image, []string{"--network", "none", "-w", "/opt"}, []string{"--workspace", "/opt"})
		f.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		f.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"hello","cwd":"/opt","sandbox":"read-only"}}}`)
		require.Contains(t, f.answer(2), "add -v /opt:/opt to its docker run")
	})
	t.Run("a container that is not there", func(t *testing.T) {
		f := runFrontEnd(t, bin, image, []string{"--network", "none", "-w", "/opt"}, []string{"--workspace", "/opt", "--self-container", "no-such-container"})
		f.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		f.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"hello","cwd":"/opt","sandbox":"read-only"}}}`)
		require.Contains(t, f.answer(2), "--self-container no-such-container: the engine at unix:///var/run/docker.sock knows no such container")
	})
}

// inspector answers inspections of containers by id, and lists them.
func inspector(containers map[string]string, list string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		w.Header().Set("Content-Type", "application/json")
		_, after, _ := strings.Cut(r.URL.Path, "/containers/")
		id, isInspect := strings.CutSuffix(after, "/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/_ping"):
		case after == "json":
			_, _ = io.WriteString(w, list)
		case isInspect && containers[id] != "":
			_, _ = io.WriteString(w, containers[id])
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"message":"No such container"}`)
		}
	})
}

func TestCandidate(t *testing.T) {
	const upper = "/var/lib/docker/overlay2/mine/diff"
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	inspected := func(id, upper string) string {
		return `{"Id":"` + id + `","Name":"/n` + id[:4] + `","GraphDriver":{"Name":"overlay2","Data":{"UpperDir":"` + upper + `"}}}`
	}
	joins := `[{"Id":"` + b + `","HostConfig":{"NetworkMode":"container:` + a + `"}}]`
	byName := `[{"Id":"` + b + `","HostConfig":{"NetworkMode":"container:naaaa"}}]`
	for _, tt := range []struct {
		name       string
		candidate  selfcontainer.Candidate
		containers map[string]string
		list       string
		upper      string
		want       string // an id
		err        string
	}{
		{"unknown", selfcontainer.Candidate{ID: a, Certain: true}, nil, `[]`, upper, "", ""},
		{"certain", selfcontainer.Candidate{ID: a, Certain: true}, map[string]string{a: inspected(a, "/other")}, `[]`, upper, a, ""},
		{"by its root", selfcontainer.Candidate{ID: a}, map[string]string{a: inspected(a, upper)}, joins, upper, a, ""},
		{"by its root, seen in part", selfcontainer.Candidate{ID: a}, map[string]string{a: inspected(a, upper)}, joins, "mine/diff", a, ""},
		{"ours has joined it", selfcontainer.Candidate{ID: a}, map[string]string{a: inspected(a, "/other"), b: inspected(b, upper)}, joins, upper, b, ""},
		{"ours has joined it by its name", selfcontainer.Candidate{ID: a}, map[string]string{a: inspected(a, "/other"), b: inspected(b, upper)}, byName, upper, b, ""},
		{"no roots are shown", selfcontainer.Candidate{ID: a}, map[string]string{a: inspected(a, "")}, `[]`, upper, a, ""},
		{"no roots are shown, and one has joined", selfcontainer.Candidate{ID: a}, map[string]string{a: inspected(a, ""), b: inspected(b, "")}, joins, upper, "", "--self-container"},
		{"another's root", selfcontainer.Candidate{ID: a}, map[string]string{a: inspected(a, "/other")}, `[]`, upper, "", "--self-container"},
		{"a short id", selfcontainer.Candidate{ID: a[:12]}, map[string]string{a[:12]: inspected(a, upper)}, `[]`, upper, a, ""},
		{"a name that looks like an id", selfcontainer.Candidate{ID: a[:12]}, map[string]string{a[:12]: inspected(b, upper)}, `[]`, upper, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(socketDir(t), "docker.sock")
			serveAt(t, path, inspector(tt.containers, tt.list))
			rt, err := New("unix://" + path)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, rt.Close()) })
			e, err := rt.connect(t.Context())
			require.NoError(t, err)
			info, err := e.candidate(t.Context(), tt.candidate, tt.upper)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			got := ""
			if info.ContainerJSONBase != nil {
				got = info.ID
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestOwnMounts(t *testing.T) {
	var info container.InspectResponse
	require.NoError(t, json.Unmarshal([]byte(`{"Id":"x","HostConfig":{"Tmpfs":{"/nonexistent/tmp":"size=1m"}},"Mounts":[
		{"Type":"bind","Source":"/srv/a","Destination":"/nonexistent/a","RW":true},
		{"Type":"bind","Source":"/srv/ro","Destination":"/nonexistent/ro","RW":false},
		{"Type":"volume","Name":"v","Source":"/var/lib/docker/volumes/v/_data","Destination":"/nonexistent/v","Driver":"local","RW":true},
		{"Type":"volume","Name":"w","Source":"/mnt/nfs","Destination":"/nonexistent/w","Driver":"nfs","RW":true},
		{"Type":"tmpfs","Destination":"/nonexistent/t","RW":true}]}`), &info))
	require.Equal(t, selfcontainer.Container{ID: "x", Mounts: []selfcontainer.Mount{
		{Target: "/nonexistent/a", Source: "/srv/a"},
		{Target: "/nonexistent/ro", Source: "/srv/ro", ReadOnly: true},
		{Target: "/nonexistent/v", Source: "/var/lib/docker/volumes/v/_data"},
		{Target: "/nonexistent/w"},
		{Target: "/nonexistent/t"},
		{Target: "/nonexistent/tmp"},
	}}, ownMounts(info))
	require.Empty(t, ownMounts(container.InspectResponse{}).Mounts)
}

// The mount that the engine gets has both paths.
func TestSourceOfMount(t *testing.T) {
	got := binds([]sandbox.Mount{{Path: "/work", Source: "/srv/a"}, {Path: "/same"}}, true)
	require.Equal(t, []string{"/srv/a", "/work", "/same", "/same"}, []string{got[0].Source, got[0].Target, got[1].Source, got[1].Target})
}
