package docker

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/moby/profiles/seccomp"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "renew golden files and the copied seccomp profile")

// The copy must be the library's profile, so that an update of the library is
// an update of ours.
func TestProfileIsTheLibrarys(t *testing.T) {
	want, err := json.MarshalIndent(seccomp.DefaultProfile(), "", " ")
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile("seccomp_default.json", want, 0o644))
	}
	require.JSONEq(t, string(want), string(defaultProfile))
}

func TestProfileAddsOnlyTheNamedCalls(t *testing.T) {
	plain, err := Profile(nil)
	require.NoError(t, err)
	codex, err := Profile([]string{"unshare", "mount"})
	require.NoError(t, err)
	var a, b seccomp.Seccomp
	require.NoError(t, json.Unmarshal([]byte(plain), &a))
	require.NoError(t, json.Unmarshal([]byte(codex), &b))
	require.Len(t, b.Syscalls, len(a.Syscalls)+1)
	last := b.Syscalls[len(b.Syscalls)-1]
	require.Equal(t, []string{"unshare", "mount"}, last.Names)
	b.Syscalls = b.Syscalls[:len(a.Syscalls)]
	require.Equal(t, a, b)
	require.NotEqual(t, "SCMP_ACT_ALLOW", string(a.DefaultAction))
}
