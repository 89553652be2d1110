package acceptance

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	dockerclient "github.com/docker/docker/client"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/testkit/frontend"
	"mcpagents/internal/testkit/wait"
)

// left is what a front end left on the machine.
type left struct{ containers, processes, copies []string }

func (l left) plus(m left) left {
	return left{append(l.containers, m.containers...), append(l.processes, m.processes...), append(l.copies, m.copies...)}
}

// common is what is in both.
func (l left) common(m left) left {
	both := func(a, b []string) []string {
		return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
	}
	return left{both(l.containers, m.containers), both(l.processes, m.processes), both(l.copies, m.copies)}
}

func (l left) count() int { return len(l.containers) + len(l.processes) + len(l.copies) }

func (l left) String() string {
	return fmt.Sprintf("containers %v, processes %v, login copies %v", l.containers, l.processes, l.copies)
}

// lookInterval is the time between two looks: each one reads what all processes
// of the machine are.
const lookInterval = 50 * time.Millisecond

// look looks for containers of the front end with that pid, for processes that
// carry the run's mark (the front end excepted), and for copies of the login.
func (s *setting) look(t *testing.T, frontEnd int) left {
	t.Helper()
	begin := time.Now()
	defer func() { s.slowestLook = max(s.slowestLook, time.Since(begin)) }()
	var l left
	if s.runtime == "docker" {
		l.containers = s.containers(t, frontEnd)
	}
	l.processes = s.marked(frontEnd)
	l.copies = s.copies(t)
	return l
}

// containers lists those of the front end with that pid, with their states.
func (s *setting) containers(t *testing.T, frontEnd int) []string {
	t.Helper()
	return frontend.Containers(t, s.lookAt, frontEnd)
}

// marked lists processes whose environment or command line shows the run.
func (s *setting) marked(except int) []string {
	return frontend.Marked("ACCEPTANCE_RUN="+s.run, s.workspace, except)
}

// engineClient is a client of the engine at an address; empty means the one
// that the docker command uses.
func engineClient(t *testing.T, address string) *dockerclient.Client {
	t.Helper()
	return frontend.Engine(t, address)
}

// copies lists files that hold the secret, outside the user's own login, and
// private homes.
func (s *setting) copies(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(s.workspace, "tmp", "codex-homes", "*"))
	require.NoError(t, err)
	for _, dir := range []string{s.workspace, os.TempDir()} {
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil //nolint:nilerr // it went away while we looked
			case path == s.login, path == built.dir, dir == os.TempDir() && path != dir && e.IsDir() && !strings.HasPrefix(e.Name(), "mcp-agents-"):
				return fs.SkipDir
			case !e.Type().IsRegular():
				return nil
			}
			if info, err := e.Info(); err != nil || info.Size() > 1<<20 { // a program
				return nil //nolint:nilerr // it went away while we looked
			}
			if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(s.secret)) {
				found = append(found, path)
			}
			return nil
		})
	}
	return found
}

// requireNothing waits until nothing is left of the front end with that pid.
func (s *setting) requireNothing(t *testing.T, frontEnd int) {
	t.Helper()
	took, l := s.clean(t, frontEnd, time.Now(), wait.Limit)
	require.Zero(t, l.count(), "after %s: %s", took, l)
}

// clean waits, up to a limit, until nothing is left and returns how long that took.
func (s *setting) clean(t *testing.T, frontEnd int, since time.Time, limit time.Duration) (time.Duration, left) {
	t.Helper()
	for {
		l := s.look(t, frontEnd)
		if took := time.Since(since); l.count() == 0 || took > limit {
			return took, l
		}
		time.Sleep(lookInterval) // the machine does not tell when something went
	}
}
