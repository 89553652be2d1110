package acceptance

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// left is what a front end left on the machine.
type left struct{ containers, processes, copies []string }

func (l left) count() int { return len(l.containers) + len(l.processes) + len(l.copies) }

func (l left) String() string {
	return fmt.Sprintf("containers %v, processes %v, login copies %v", l.containers, l.processes, l.copies)
}

// look looks for containers of the front end with that pid, for processes that
// carry the run's mark (the front end excepted), and for copies of the login.
func (s *setting) look(t *testing.T, frontEnd int) left {
	t.Helper()
	var l left
	if s.runtime == "docker" {
		out, err := exec.Command("docker", "ps", "-aq", "--filter", "label=mcp-agents.instance="+strconv.Itoa(frontEnd)).Output()
		require.NoError(t, err)
		l.containers = strings.Fields(string(out))
	}
	l.processes = s.marked(frontEnd)
	l.copies = s.copies(t)
	return l
}

// marked lists processes whose environment or command line shows the run.
func (s *setting) marked(except int) []string {
	var found []string
	stats, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range stats {
		if filepath.Base(dir) == strconv.Itoa(except) || filepath.Base(dir) == strconv.Itoa(os.Getpid()) {
			continue
		}
		env, _ := os.ReadFile(dir + "/environ")
		cmdline, _ := os.ReadFile(dir + "/cmdline")
		if bytes.Contains(env, []byte("ACCEPTANCE_RUN="+s.run)) || bytes.Contains(cmdline, []byte(s.workspace)) {
			found = append(found, filepath.Base(dir)+" "+string(bytes.ReplaceAll(cmdline, []byte{0}, []byte(" "))))
		}
	}
	return found
}

// copies lists files that hold the secret, outside the user's own login.
func (s *setting) copies(t *testing.T) []string {
	t.Helper()
	var found []string
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
			if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(s.secret)) {
				found = append(found, path)
			}
			return nil
		})
	}
	return found
}

// clean waits until nothing is left and returns how long that took.
func (s *setting) clean(t *testing.T, frontEnd int, since time.Time, limit time.Duration) (time.Duration, left) {
	t.Helper()
	for {
		l := s.look(t, frontEnd)
		if took := time.Since(since); l.count() == 0 || took > limit {
			return took, l
		}
		time.Sleep(10 * time.Millisecond) // the machine does not tell when something went
	}
}
