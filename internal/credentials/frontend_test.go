package credentials

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// frontEnd is this binary as one of several front ends. It says what it waits for and what it
// got, one line each; a line of input makes it write a refreshed login back.
func frontEnd(dir string) int {
	said := slog.New(slog.NewTextHandler(os.Stdout, nil))
	s, err := Acquire(context.Background(), Codex(dir), said)
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	fmt.Println("got", map[bool]string{true: "the lock", false: "a copy"}[s.unlock != nil], s.expiring())
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		return 0
	}
	o, err := s.WriteBack(context.Background(), "auth.json", dated(2, time.Now().Add(time.Hour)))
	fmt.Println("wrote", o.Status, err)
	_, _ = io.Copy(io.Discard, in) // it lives until the test lets go of it
	return 0
}

// process is a running front end.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Reader
}

func startFrontEnd(t *testing.T, dir string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), "LOGIN_TEST_FRONT_END_DIR="+dir)
	var err error
	p.in, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.lines = bufio.NewReader(out)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		_ = p.in.Close()
		_ = p.cmd.Wait()
	})
	return p
}

func (p *process) line(t *testing.T) string {
	t.Helper()
	line, err := p.lines.ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}

// TestFrontEndsShareTheLock: of five processes the first is killed while it is the refresher.
// Then one other is, and the rest start with what that one wrote.
func TestFrontEndsShareTheLock(t *testing.T) {
	_, dir, _ := expiring(t)
	first := startFrontEnd(t, dir)
	require.Equal(t, "got the lock true", first.line(t))
	var rest []*process
	for range 4 {
		p := startFrontEnd(t, dir)
		require.Contains(t, p.line(t), "waiting for another sandbox")
		rest = append(rest, p)
	}
	started := time.Now()
	require.NoError(t, first.cmd.Process.Kill())

	type said struct {
		by   *process
		line string
		err  error
	}
	next := make(chan said, len(rest))
	for _, p := range rest {
		go func() { line, err := p.lines.ReadString('\n'); next <- said{p, strings.TrimSpace(line), err} }()
	}
	second := <-next
	require.NoError(t, second.err)
	require.Equal(t, "got the lock true", second.line)
	assert.Less(t, time.Since(started), RefreshHold/2, "the lock was free when its holder was dead")

	_, err := io.WriteString(second.by.in, "refresh\n")
	require.NoError(t, err)
	require.Equal(t, "wrote written <nil>", second.by.line(t))
	for range len(rest) - 1 {
		s := <-next
		require.NoError(t, s.err)
		assert.Equal(t, "got a copy false", s.line)
	}
	assert.True(t, refreshLockFree(t, dir))
}
