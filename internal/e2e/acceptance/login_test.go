package acceptance

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Without a usable login no container is made: the client is served, and a call
// says at once what is missing and what to do.
func TestUnusableLogin(t *testing.T) {
	image := fakeImage(t)
	for _, tt := range []struct {
		name    string
		prepare func(t *testing.T, auth string)
		want    string
	}{
		{"an empty home", func(t *testing.T, auth string) {}, "does not exist; run codex login as this user, or set CODEX_API_KEY or OPENAI_API_KEY"},
		{"a home with a configuration only", func(t *testing.T, auth string) {
			require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(auth), "config.toml"), []byte("model = \"x\"\n"), 0o600))
		}, "does not exist; run codex login as this user, or set CODEX_API_KEY or OPENAI_API_KEY"},
		{"a directory in its place", func(t *testing.T, auth string) { require.NoError(t, os.Mkdir(auth, 0o700)) }, "is not a regular file: remove it and run codex login"},
		{"a file that cannot be read", func(t *testing.T, auth string) {
			require.NoError(t, os.Symlink("auth.json", auth)) // to itself: not even root can
		}, "too many levels of symbolic links: remove it and run codex login"},
		{"no JSON", func(t *testing.T, auth string) {
			require.NoError(t, os.WriteFile(auth, []byte("{"), 0o600))
		}, "is not valid JSON; run codex login"},
		{"no token", func(t *testing.T, auth string) {
			require.NoError(t, os.WriteFile(auth, []byte(`{"tokens":{}}`), 0o600))
		}, "holds no credential; run codex login"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSetting(t, "docker", image)
			auth := filepath.Join(s.login, "auth.json")
			require.NoError(t, os.Remove(auth))
			tt.prepare(t, auth)
			s.env = []string{"OPENAI_API_KEY=", "CODEX_API_KEY="}
			c := s.start(t)
			begin := time.Now()
			c.initialize()
			answer := c.answer(c.codex(script(up, answerOK), nil))
			require.Less(t, time.Since(begin), 2*time.Second) // half of it for the start of the process
			require.Nil(t, answer.Error)
			require.Contains(t, string(answer.Result), `"isError":true`)
			require.Contains(t, answer.text(), tt.want)
			require.Empty(t, s.containers(t, c.cmd.Process.Pid))
			require.NoError(t, c.in.Close())
			require.Zero(t, c.exit())
		})
	}
}
