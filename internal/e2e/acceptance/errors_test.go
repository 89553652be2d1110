package acceptance

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mcpagents/internal/testkit/images"

	"github.com/stretchr/testify/require"
)

// closedPort is an address of loopback where nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// Whatever is wrong around a front end, its client is served, and a call says
// what is wrong and what to do, while a ping is answered.
func TestCallsSayWhatIsWrong(t *testing.T) {
	images.Codex(t) // an engine is needed for what an engine says
	for _, tt := range []struct {
		name    string
		prepare func(t *testing.T, s *setting)
		says    []string
	}{
		{"engine absent", func(t *testing.T, s *setting) { s.engine = "unix://" + s.login + "/none.sock" },
			[]string{"no Docker engine at unix://", "(--docker_host)", "install and start Docker", "DOCKER_HOST"}},
		{"engine refuses", func(t *testing.T, s *setting) { s.engine = "tcp://" + closedPort(t) },
			[]string{"tcp://127.0.0.1:", "is not running: start it"}},
		{"engine is silent", func(t *testing.T, s *setting) { s.engine = silentEngine(t) },
			[]string{"does not answer: restart it"}},
		{"engine denies", func(t *testing.T, s *setting) {
			if os.Getuid() != 0 {
				t.Skip("only root can become another user")
			}
			require.NoError(t, os.Chmod(filepath.Dir(s.login), 0o755))
			s.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}
			require.NoError(t, os.Chown(s.login, 1000, 1000))
			require.NoError(t, os.Chown(filepath.Join(s.login, "auth.json"), 1000, 1000))
			link := linkAt(t, filepath.Join(s.login, "s"), "/var/run/docker.sock", false)
			require.NoError(t, os.Chmod(filepath.Join(s.login, "s"), 0o600))
			s.engine = link.address()
		}, []string{"no permission to use the Docker engine at unix://"}},
		{"context is gone", func(t *testing.T, s *setting) { s.env = append(s.env, "DOCKER_CONTEXT=gone", "DOCKER_HOST=") },
			[]string{`"gone"`, "DOCKER_CONTEXT"}},
		{"configuration is broken", func(t *testing.T, s *setting) {
			require.NoError(t, os.WriteFile(filepath.Join(s.login, "config.json"), []byte(`{"currentContext":`), 0o644))
			s.env = append(s.env, "DOCKER_CONFIG="+s.login, "DOCKER_HOST=", "DOCKER_CONTEXT=")
		}, []string{"config.json"}},
		{"TLS files are missing", func(t *testing.T, s *setting) {
			s.env = append(s.env, "DOCKER_HOST=tcp://"+closedPort(t), "DOCKER_TLS_VERIFY=1", "DOCKER_CERT_PATH="+s.login)
		}, []string{"ca.pem"}},
		{"image is missing", func(t *testing.T, s *setting) { s.image = "mcp-agents/none:1" },
			[]string{"mcp-agents/none:1", "--image"}},
		{"OCI runtime is unknown", func(t *testing.T, s *setting) { s.args = append(s.args, "--oci_runtime", "nope") },
			[]string{`"nope"`, "runc"}},
		{"login is missing", func(t *testing.T, s *setting) {
			require.NoError(t, os.Remove(filepath.Join(s.login, "auth.json")))
			s.env = append(s.env, "OPENAI_API_KEY=", "CODEX_API_KEY=")
		}, []string{"run codex login"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSetting(t, "docker", fakeImage(t))
			s.args = []string{"--handshake_timeout", "1"}
			tt.prepare(t, s)
			c := s.start(t)
			c.initialize()
			require.Contains(t, string(c.answer(c.request("tools/list", map[string]any{})).Result), `"name":"codex"`)
			call := c.codex(script(up, answerOK), nil)
			require.Nil(t, c.answer(c.request("ping", nil)).Error)
			answer, ok := c.answers[float64(call)]
			if !ok {
				answer = c.answer(call)
			}
			require.Contains(t, string(answer.Result), `"isError":true`)
			for _, says := range tt.says {
				require.Contains(t, answer.text(), says)
			}
			require.NoError(t, c.in.Close())
			require.Zero(t, c.exit())
		})
	}
}

// What the operator got wrong on the command line ends the start, with a line
// that says what to do.
func TestStartSaysWhatIsWrong(t *testing.T) {
	for _, tt := range []struct {
		name   string
		args   []string
		status int
		says   []string
	}{
		{"certificates that are not there", []string{"--ca_file", "/nonexistent/ca.pem"}, 1, []string{"--ca_file", "/nonexistent/ca.pem"}},
		{"certificates that are none", []string{"--ca_file", "/etc/passwd"}, 1, []string{"--ca_file", "/etc/passwd", "PEM"}},
		{"a workspace that is not there", []string{"--workspace", "/nonexistent/ws"}, 1, []string{"/nonexistent/ws", "must exist"}},
		{"the whole machine as workspace", []string{"--workspace", "/"}, 1, []string{`"/"`, "a container has of its own", "--workspace"}},
		{"memory that is no size", []string{"--memory", "much"}, 1, []string{"--memory"}},
		{"a host that is none", []string{"--docker_host", "ftp://x"}, 1, []string{"ftp://x"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSetting(t, "docker", "")
			s.args = tt.args
			c := s.start(t)
			require.Equal(t, tt.status, c.exit())
			text := strings.TrimSpace(c.stderr.String())
			require.LessOrEqual(t, strings.Count(text, "\n"), 2, text)
			for _, says := range tt.says {
				require.Contains(t, text, says)
			}
		})
	}
}

// An engine that was not there at the start, or went away, is used as soon as
// it is there: nobody restarts the server.
func TestEngineComesUpLater(t *testing.T) {
	image := fakeImage(t)
	s := newSetting(t, "docker", image)
	path := filepath.Join(s.login, "s")
	s.engine = "unix://" + path
	s.args = []string{"--handshake_timeout", "1"}
	c := s.start(t)
	c.initialize()
	turn := func() reply { return c.answer(c.codex(script(up, answerOK), nil)) }
	require.Contains(t, string(turn().Result), `"isError":true`)
	linkAt(t, path, "/var/run/docker.sock", false)
	answer := turn()
	require.NotContains(t, string(answer.Result), `"isError":true`)
	require.Equal(t, "ok", answer.text())
	require.NoError(t, c.in.Close())
	require.Zero(t, c.exit())
	s.requireNothing(t, c.cmd.Process.Pid)
}
