package credentials

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/provider/codex"
	"mcpagents/internal/testkit/frontend"
)

// codexSession is one launched fakelogin in a local sandbox.
type codexSession struct {
	*testing.T
	child *codex.Child
	lines *bufio.Reader
	log   *frontend.Buffer
}

// launch starts fakelogin over a login directory.
func launch(t *testing.T, loginDir string) *codexSession {
	t.Helper()
	s := &codexSession{T: t, log: &frontend.Buffer{}}
	l, err := settings{Login: loginDir, Workspace: t.TempDir(), Homes: t.TempDir()}.launcher(
		slog.New(slog.NewTextHandler(s.log, nil)))
	require.NoError(t, err)
	s.child, err = l.Launch(t.Context())
	require.NoError(t, err)
	s.lines = bufio.NewReader(s.child.Stdout)
	return s
}

// do gives the CLI a command and returns its answer.
func (s *codexSession) do(command string) string {
	s.Helper()
	_, err := io.WriteString(s.child.Stdin, command+"\n")
	require.NoError(s, err)
	answer, err := s.lines.ReadString('\n')
	require.NoError(s, err)
	return strings.TrimSpace(answer)
}

func (s *codexSession) close() {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	require.NoError(s, s.child.Close(ctx))
}

// names are the files of a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	all := []string{}
	for _, e := range list {
		all = append(all, e.Name())
	}
	return all
}

// TestKeysBecomeALogin: without an auth.json a key variable is one in the sandbox, and what the
// CLI makes of it stays there.
func TestKeysBecomeALogin(t *testing.T) {
	for name, tt := range map[string]struct{ codexKey, openaiKey, want string }{
		"CODEX_API_KEY":  {"codex-key", "", "codex-key"},
		"OPENAI_API_KEY": {"", "openai-key", "openai-key"},
		"both":           {"codex-key", "openai-key", "codex-key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CODEX_API_KEY", tt.codexKey)
			t.Setenv("OPENAI_API_KEY", tt.openaiKey)
			dir := t.TempDir()
			s := launch(t, dir)
			assert.JSONEq(t, `{"OPENAI_API_KEY":"`+tt.want+`"}`, s.do("show"))
			assert.Equal(t, "saved good", s.do("save good"))
			s.close()
			assert.Empty(t, names(t, dir), "nothing is written back, and nothing is locked")
			assert.NotContains(t, s.log.String(), "auth.json")
		})
	}
	t.Run("a file wins over a key", func(t *testing.T) { // and is the control: it is written back
		t.Setenv("CODEX_API_KEY", "codex-key")
		dir := t.TempDir()
		before := expiredLogin()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "auth.json"), before, 0o600))
		s := launch(t, dir)
		assert.JSONEq(t, string(before), s.do("show"))
		s.do("save good")
		s.close()
		assert.Contains(t, s.log.String(), persisted)
		after, err := os.ReadFile(filepath.Join(dir, "auth.json"))
		require.NoError(t, err)
		assert.Equal(t, 2, generation(after))
	})
	t.Run("neither", func(t *testing.T) {
		t.Setenv("CODEX_API_KEY", "")
		t.Setenv("OPENAI_API_KEY", "")
		homes := t.TempDir()
		l, err := settings{Login: t.TempDir(), Workspace: t.TempDir(), Homes: homes}.launcher(slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		_, err = l.Launch(t.Context())
		var failed *codex.LaunchError
		require.ErrorAs(t, err, &failed)
		assert.Contains(t, failed.Text, "run codex login as this user, or set CODEX_API_KEY or OPENAI_API_KEY")
		assert.Empty(t, names(t, homes), "no sandbox was made")
	})
}

// TestHostileFilesAreNotWrittenBack: whatever a CLI makes of its auth.json, the user's stays as
// it is. The control is that the same sandbox may then still write back a good one.
func TestHostileFilesAreNotWrittenBack(t *testing.T) {
	const refused = "failed to persist Codex auth.json: refused the sandbox's copy: "
	for kind, said := range map[string]string{
		"half":    refused + "is not valid JSON",
		"empty":   refused + "is not valid JSON",
		"text":    refused + "is not valid JSON",
		"blank":   refused + "it would blank a credential that the canonical file holds",
		"account": refused + "it belongs to another account",
		// sandbox-init does not even report these:
		"big": "", "link": "", "directory": "", "pipe": "",
	} {
		for _, healed := range []bool{false, true} {
			t.Run(kind+map[bool]string{true: " and then a good one", false: " at the end"}[healed], func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				path := filepath.Join(dir, "auth.json")
				before := expiredLogin()
				require.NoError(t, os.WriteFile(path, before, 0o600))
				s := launch(t, dir)
				require.Equal(t, "saved "+kind, s.do("save "+kind))
				if healed {
					require.Equal(t, "saved good", s.do("save good"))
				}
				s.close()
				info, err := os.Lstat(path)
				require.NoError(t, err)
				require.True(t, info.Mode().IsRegular())
				after, err := os.ReadFile(path)
				require.NoError(t, err)
				if healed {
					assert.Equal(t, 2, generation(after))
					assert.Contains(t, s.log.String(), persisted)
					return
				}
				assert.Equal(t, string(before), string(after))
				assert.NotContains(t, s.log.String(), persisted)
				assert.Contains(t, s.log.String(), said)
				assert.NotContains(t, s.log.String(), "refresh-", "no secret is logged")
				assert.Equal(t, said == "", !strings.Contains(s.log.String(), refused))
			})
		}
	}
}
