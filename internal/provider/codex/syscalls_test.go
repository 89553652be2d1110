package codex

import (
	"testing"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox/docker"
)

// Codex's sandboxes get the default profile and these five calls.
func TestSyscallsAreInTheProfile(t *testing.T) {
	profile, err := docker.Profile(Syscalls())
	require.NoError(t, err)
	require.Contains(t, profile, `{"action":"SCMP_ACT_ALLOW","names":["clone","unshare","mount","umount2","pivot_root"]}`)
}
