package acceptance

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// surroundingFaults are those of what the sandbox relies on outside: the
// workspace, the user's login.
var surroundingFaults = []fault{
	{name: "workspace is removed during a call", prompt: stallingCall, do: func(c *client) {
		_ = os.RemoveAll(c.cmd.Dir)
		closeInput(c)
	}, status: []int{0}, args: impatient},
	{name: "workspace is removed during a call, front end gets SIGKILL", prompt: stallingCall, do: func(c *client) {
		_ = os.RemoveAll(c.cmd.Dir)
		kill(c)
	}, status: []int{137}},
	{name: "login's directory vanishes before its token is rotated", prompt: rotatingCall, do: func(c *client) {
		_ = os.RemoveAll(c.s.login)
		rotateThenLeave(c)
	}, status: []int{0}, told: "^ok$", says: "(failed to persist|skipped) .*Codex auth.json"},
	{name: "login's directory is read-only when its token is rotated", on: "local", setup: asNobody, prompt: rotatingCall, do: func(c *client) {
		require.NoError(c.t, os.Chmod(c.s.login, 0o500))
		rotateThenLeave(c)
	}, status: []int{0}, told: "^ok$", says: "failed to persist Codex auth.json"},
	// The control of both.
	{name: "login's token is rotated", prompt: rotatingCall, do: rotateThenLeave, status: []int{0}, told: "^ok$", says: "persisted refreshed Codex auth.json"},
}

// rotatingCall rotates when the fault has been made, which rotateThenLeave says.
var rotatingCall = script(up, `{"do":"until","path":"go-on"}`, rotate, answerOK)

func rotateThenLeave(c *client) {
	require.NoError(c.t, os.WriteFile(filepath.Join(c.s.workspace, "go-on"), nil, 0o644))
	answeredThenLeave(c)
}

// asNobody makes the front end one of a user for whom a directory's mode counts.
func asNobody(t *testing.T, s *setting) {
	if os.Getuid() != 0 {
		return
	}
	const nobody = 65534
	// The test's own directory above is closed to others.
	require.NoError(t, os.Chmod(filepath.Dir(s.workspace), 0o755))
	for _, path := range []string{s.workspace, s.login, filepath.Join(s.login, "auth.json")} {
		require.NoError(t, os.Chown(path, nobody, nobody))
	}
	s.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}
