package codex

import (
	"errors"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/workspace"
)

// named is a runtime that is only asked for its name.
type named struct {
	sandbox.Runtime
	name string
}

func (n named) Name() string { return n.name }

// On a machine where SELinux enforces, a workspace that a container is denied
// needs a label: the error says so, and no other does.
func TestDeniedHint(t *testing.T) {
	denied := &sandbox.SpawnError{Code: 126, Text: "start codex: chdir /w: permission denied"}
	for name, tt := range map[string]struct {
		enforce, runtime string
		err              error
		want             bool
	}{
		"denied":                    {"1", "docker", denied, true},
		"denied, wrapped":           {"1", "docker", errors.Join(errors.New("x"), denied), true},
		"denied without a file":     {"1", "docker", &sandbox.SpawnError{Code: 127, Text: "codex: not found"}, false},
		"denied by nothing of ours": {"1", "docker", errors.New("permission denied"), false},
		"not enforcing":             {"0", "docker", denied, false},
		"no container":              {"1", "local", denied, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			roots, err := workspace.Resolve([]string{dir}, dir, "", nil)
			require.NoError(t, err)
			s := &Sandboxed{Runtime: named{name: tt.runtime}, Roots: roots, Machine: fstest.MapFS{"sys/fs/selinux/enforce": {Data: []byte(tt.enforce)}}}
			hint := s.deniedHint(tt.err)
			if !tt.want {
				assert.Empty(t, hint)
				return
			}
			assert.Contains(t, hint, "SELinux is enforcing")
			assert.Contains(t, hint, "chcon -Rt container_file_t ")
		})
	}
}
