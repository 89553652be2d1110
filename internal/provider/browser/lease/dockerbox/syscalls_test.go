package dockerbox

import (
	"testing"

	"github.com/stretchr/testify/require"

	engine "mcpagents/internal/sandbox/docker"
)

// The browser's profile is the default one and one rule more; the tool server
// needs nothing beyond the default.
func TestSyscalls(t *testing.T) {
	box := New(Config{})
	profile, err := engine.Profile(box.browserSpec().Syscalls)
	require.NoError(t, err)
	require.Contains(t, profile, `{"action":"SCMP_ACT_ALLOW","names":["clone","unshare","chroot"]}`)
	require.Empty(t, box.cfg.Workspace.Syscalls)
}
