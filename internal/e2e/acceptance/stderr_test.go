package acceptance

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A pipe holds 64 KiB: a Codex that writes more errors than that before its
// first answer, or after its stdout is closed, must not wait for a reader.
func TestErrorsAreReadFromStartToExit(t *testing.T) {
	const flood = `head -c 1000000 /dev/zero | tr '\0' x >&2; echo " THE END" >&2` + "\n"
	for _, tt := range []struct {
		name, codex string
		status      int
		told        string
	}{
		{"before initialize", flood + `exec "$FAKE" "$@"` + "\n", 0, "ok"},
		{"after the end of its output", `"$FAKE" "$@"; exec >&-` + "\n" + flood + "exit 7\n", 7, "ok"},
		{"and then it dies", flood + "exit 7\n", 0, "THE END"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSetting(t, "local", "")
			dir := t.TempDir()
			program := "#!/bin/sh\n[ \"$1\" != --version ] || exec \"$FAKE\" \"$@\"\n" + tt.codex
			require.NoError(t, os.WriteFile(filepath.Join(dir, "codex"), []byte(program), 0o755))
			s.args = []string{"--env", "FAKE"}
			s.env = []string{"FAKE=" + built.fakeCodex, "PATH=" + dir + ":" + os.Getenv("PATH")}
			c := s.start(t)
			c.initialize()
			require.Contains(t, string(c.answer(c.codex(script(answerOK), nil)).Result), tt.told)
			require.NoError(t, c.in.Close())
			require.Equal(t, tt.status, c.exit())
			s.requireNothing(t, c.cmd.Process.Pid)
		})
	}
}
