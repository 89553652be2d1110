package credentials

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is said; the numbers are generations of the login.
const (
	asked     = "vendor asked"
	refreshed = "vendor refreshed 2"
	reused    = "vendor reused"
	gone      = "vendor gone"
	waiting   = "waiting for another sandbox to refresh the Codex login"
	persisted = "persisted refreshed Codex auth.json back to CODEX_HOME"
	worked    = "result: worked with 2"
	loggedOut = "result: error: logged out: refresh_token_reused"
)

// TestOneRefresh: eight front ends start with one ended access token; one refreshes, and all
// of them work.
func TestOneRefresh(t *testing.T) {
	s := newScene(t)
	s.startVendor()
	s.oneRefresh(8)
}

func (s *scene) oneRefresh(n int) {
	s.Stay = true // so that it is the write-back that lets the others go on
	s.start(n)
	// The vendor does not answer before everybody else is known to wait.
	s.await(map[string]int{asked: 1, waiting: n - 1})
	s.allow("go", 1)
	s.await(map[string]int{worked: n})
	s.leave()
	s.await(map[string]int{"closed: <nil>": n})
	s.requireSaid(map[string]int{asked: 1, refreshed: 1, reused: 0, persisted: 1, waiting: n - 1})
	s.requireNewest()
}

// requireNewest: the user's file is what the vendor gave out last.
func (s *scene) requireNewest() {
	data, err := os.ReadFile(s.file())
	require.NoError(s, err)
	assert.Equal(s, 2, generation(data))
	info, err := os.Stat(s.file())
	require.NoError(s, err)
	assert.Equal(s, os.FileMode(0o600), info.Mode().Perm())
}

// TestWithoutTheLock is the negative control of the tests here: everybody refreshes, and all
// but one are logged out.
func TestWithoutTheLock(t *testing.T) {
	const n = 8
	s := newScene(t)
	s.NoLock = true
	s.startVendor()
	s.start(n)
	s.await(map[string]int{asked: n})
	s.allow("go", n)
	s.await(map[string]int{"result:": n, "closed: <nil>": n})
	s.requireSaid(map[string]int{asked: n, refreshed: 1, reused: n - 1, worked: 1, loggedOut: n - 1, waiting: 0})
	s.requireNewest()
}

// TestTheRefresherIsKilled while the vendor has not yet answered: another one refreshes.
func TestTheRefresherIsKilled(t *testing.T) {
	t.Run("its front end", func(t *testing.T) {
		s := newScene(t)
		s.startVendor()
		s.refresherKilled(8, func(pid int) { require.NoError(t, syscall.Kill(pid, syscall.SIGKILL)) })
		s.requireSaid(map[string]int{"closed: <nil>": 7})
	})
	t.Run("its sandbox", func(t *testing.T) {
		s := newScene(t)
		s.startVendor()
		s.refresherKilled(8, func(pid int) {
			init := children(t, pid)
			require.Len(t, init, 1)
			require.NoError(t, syscall.Kill(init[0], syscall.SIGKILL))
		})
		s.await(map[string]int{"result: no answer": 1})
	})
}

func (s *scene) refresherKilled(n int, kill func(pid int)) {
	s.start(n)
	s.await(map[string]int{asked: 1, waiting: n - 1})
	kill(s.fronts[s.refresher()].Process.Pid)
	s.await(map[string]int{gone: 1, asked: 2})
	data, err := os.ReadFile(s.file())
	require.NoError(s, err)
	require.Equal(s, string(s.before), string(data))
	s.allow("go", 1)
	s.await(map[string]int{worked: n - 1, "closed: <nil>": n - 1})
	s.requireSaid(map[string]int{asked: 2, refreshed: 1, reused: 0, persisted: 1})
	s.requireNewest()
}

// TestTheAnswerIsLost: the vendor has spent the token, and the refresher dies before it knows.
// Nobody can save that login, but the user's file stays as it was.
func TestTheAnswerIsLost(t *testing.T) {
	const n = 3
	s := newScene(t)
	s.startVendor()
	s.start(n)
	s.await(map[string]int{asked: 1, waiting: n - 1})
	s.allow("swallow", 1)
	s.await(map[string]int{refreshed: 1})
	require.NoError(t, s.fronts[s.refresher()].Process.Kill())
	s.allow("go", n-1)
	s.await(map[string]int{loggedOut: n - 1, "closed: <nil>": n - 1})
	s.requireSaid(map[string]int{asked: n, refreshed: 1, reused: n - 1, persisted: 0})
	data, err := os.ReadFile(s.file())
	require.NoError(t, err)
	assert.Equal(t, string(s.before), string(data))
}

// children are the pids of a process's children.
func children(t *testing.T, pid int) []int {
	t.Helper()
	lists, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	require.NoError(t, err)
	var pids []int
	for _, path := range lists {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, field := range strings.Fields(string(data)) {
			child, err := strconv.Atoi(field)
			require.NoError(t, err)
			pids = append(pids, child)
		}
	}
	return pids
}
