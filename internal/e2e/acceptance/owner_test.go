package acceptance

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A user that the operator names, and that no passwd file knows, may be unable
// to write: that is said once at the start, and reading works.
func TestUserThatCannotWriteTheWorkspace(t *testing.T) {
	s := realCodex(t, 1000)
	s.put(t, "note.txt", "read me\n", 0o644)
	s.args = append(s.args, "--user", "4242:4242")
	c := s.start(t)
	c.initialize()
	text := c.turn(`[[exec: cat note.txt; echo "uid $(id -u)"]]`, map[string]any{"sandbox": "read-only"})
	require.Contains(t, text, "read me")
	require.Contains(t, text, "uid 4242")
	text = c.turn(`[[exec: (echo x > made.txt) 2>&1; echo x > "$HOME/h" && echo home]]`, map[string]any{"sandbox": "danger-full-access"})
	require.Contains(t, text, "Permission denied")
	require.Contains(t, text, "home", "its own home can be written")
	require.NoError(t, c.in.Close())
	require.Zero(t, c.exit())
	require.False(t, exists(s.workspace, "made.txt"))
	require.Equal(t, 1, strings.Count(c.stderr.String(), "the sandbox runs as 4242:4242 and cannot write the workspace: "+
		"writing turns will fail; let its owner start mcp-agents, or name another user with --user"), c.stderr.String())
}

// A workspace that only its owner may enter: a front end of root starts the
// sandbox as that owner, whom the image does not know.
func TestPrivateWorkspaceOfAnUnknownUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make a workspace of another user")
	}
	s := realCodex(t, 1001)
	require.NoError(t, os.Chmod(s.workspace, 0o700))
	c := s.start(t)
	c.initialize()
	text := c.turn(`[[exec: echo x > made.txt && echo "uid $(id -u)"; echo x > "$HOME/h" && echo home]]`, map[string]any{"sandbox": "danger-full-access"})
	require.Contains(t, text, "uid 1001")
	require.Contains(t, text, "home")
	require.NoError(t, c.in.Close())
	require.Zero(t, c.exit())
	require.NotContains(t, c.stderr.String(), "cannot write the workspace")
	st, err := os.Stat(filepath.Join(s.workspace, "made.txt"))
	require.NoError(t, err)
	require.Equal(t, uint32(1001), st.Sys().(*syscall.Stat_t).Uid)
}
