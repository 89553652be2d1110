package tools

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/testkit/frontend"
)

// built holds the programs that the tests run.
var built struct{ dir, agents string }

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, remove, err := frontend.Programs("mcp-agents-toole2e-", map[string]string{"mcp-agents": "mcpagents/cmd/mcp-agents",
		"fake/claude": "mcpagents/internal/testkit/fakeclaude", "fake/agy": "mcpagents/internal/testkit/fakeclaude"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer remove()
	built.dir, built.agents = dir, filepath.Join(dir, "mcp-agents")
	return m.Run()
}

// server is a running program.
type server struct {
	t         *testing.T
	cmd       *exec.Cmd
	workspace string
	in        io.WriteCloser
	out       *bufio.Reader
	stderr    *bytes.Buffer // to be read once it has ended
	nextID    int
}

// start starts the program with a provider.
func start(t *testing.T, provider string, args ...string) *server {
	t.Helper()
	s := &server{t: t, workspace: t.TempDir(), stderr: new(bytes.Buffer)}
	s.cmd = exec.Command(built.agents, append([]string{"--provider", provider, "--runtime", "local", "--stop_grace", "1"}, args...)...)
	s.cmd.Dir = s.workspace
	home := t.TempDir()
	s.cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME="+filepath.Join(home, "cache"), "CLAUDE_CONFIG_DIR="+home,
		"ANTHROPIC_API_KEY=made-up", s.mark(), "PATH="+filepath.Join(built.dir, "fake")+":"+os.Getenv("PATH"))
	s.cmd.Stderr = s.stderr
	var err error
	s.in, err = s.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	s.out = bufio.NewReader(out)
	require.NoError(t, s.cmd.Start())
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // one that has ended is not there any more
		_ = s.cmd.Wait()
	})
	return s
}

// mark is a variable that every process of the server has.
func (s *server) mark() string { return "TOOLE2E_RUN=" + s.workspace }

// processes are those of the server's sandboxes.
func (s *server) processes() []string { return frontend.Marked(s.mark(), "", s.cmd.Process.Pid) }

// send sends a request.
func (s *server) send(method string, params any) {
	s.t.Helper()
	s.nextID++
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": s.nextID, "method": method, "params": params})
	require.NoError(s.t, err)
	_, err = s.in.Write(append(b, '\n'))
	require.NoError(s.t, err)
}

// ask sends a request and returns the result of its answer, which is the next
// message.
func (s *server) ask(method string, params any) string {
	s.t.Helper()
	s.send(method, params)
	line, err := s.out.ReadBytes('\n')
	require.NoError(s.t, err)
	var m struct {
		ID     int             `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	require.NoError(s.t, json.Unmarshal(line, &m))
	require.Equal(s.t, s.nextID, m.ID)
	require.Empty(s.t, m.Error)
	return string(m.Result)
}

// tool is an entry of the tool list.
type tool struct {
	members map[string]json.RawMessage
	Name    string         `json:"name"`
	Schema  map[string]any `json:"inputSchema"`
}

// tools asks for the list, without a handshake before it.
func (s *server) tools() (list []tool) {
	s.t.Helper()
	var result struct {
		Tools []json.RawMessage `json:"tools"`
	}
	require.NoError(s.t, json.Unmarshal([]byte(s.ask("tools/list", map[string]any{})), &result))
	for _, raw := range result.Tools {
		var one tool
		require.NoError(s.t, json.Unmarshal(raw, &one))
		require.NoError(s.t, json.Unmarshal(raw, &one.members))
		list = append(list, one)
	}
	return list
}

// schema is that of a tool, without its descriptions, which are free.
func schema(t *testing.T, list []tool, name string) string {
	t.Helper()
	for _, one := range list {
		if one.Name == name {
			properties, _ := one.Schema["properties"].(map[string]any)
			for _, p := range properties {
				delete(p.(map[string]any), "description")
			}
			b, err := json.Marshal(one.Schema)
			require.NoError(t, err)
			return string(b)
		}
	}
	require.FailNow(t, "no tool "+name)
	return ""
}

func names(list []tool) (all []string) {
	for _, one := range list {
		all = append(all, one.Name)
	}
	return all
}

// end waits for the program's end and returns its status.
func (s *server) end() int {
	s.t.Helper()
	late := time.AfterFunc(10*time.Second, func() { _ = s.cmd.Process.Kill() })
	defer late.Stop()
	_, _ = io.Copy(io.Discard, s.out)
	_ = s.cmd.Wait()
	return s.cmd.ProcessState.ExitCode()
}
