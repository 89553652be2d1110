//go:build !windows

package stdio

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// play returns this test binary in a role, ended with the test at the latest.
func play(t *testing.T, role string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	return cmd
}

// A client that closes our output and keeps our input open: the answer meets a
// broken pipe, and the process ends by itself with status 0. The control shows
// that without catching the signal it would die before any cleanup.
func TestProcessBrokenPipe(t *testing.T) {
	for role, killed := range map[string]bool{"server-caught": false, "server": true} {
		cmd := play(t, role)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, w, err := os.Pipe()
		require.NoError(t, err)
		cmd.Stdout = w
		require.NoError(t, cmd.Start())
		require.NoError(t, w.Close())
		require.NoError(t, out.Close())
		_, err = io.WriteString(in, call("1")+"\n")
		require.NoError(t, err)
		_ = cmd.Wait()
		status := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if killed {
			assert.Equal(t, syscall.SIGPIPE, status.Signal(), role)
		} else {
			assert.Equal(t, 0, status.ExitStatus(), "%s: %s", role, stderr.String())
		}
		cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		assert.Less(t, cpu, 2*time.Second, "it does not spin")
	}
}

func TestProcessEndOfInput(t *testing.T) {
	cmd := play(t, "server-caught")
	cmd.Stdin = bytes.NewBufferString(call("1") + "\n" + frame(call("2")))
	out, err := cmd.Output()
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"line " + ok("1"), "framed " + ok("2")}, readAll(bytes.NewReader(out), ReaderOptions{}))
}

func TestProbeProcess(t *testing.T) {
	require.NoError(t, probeProcess(os.Getpid()))
	cmd := play(t, "exit")
	require.NoError(t, cmd.Start())
	pid := cmd.Process.Pid
	require.NoError(t, probeProcess(pid), "running, or ended and not yet waited for")
	require.NoError(t, cmd.Wait())
	require.ErrorIs(t, probeProcess(pid), syscall.ESRCH)
	assert.True(t, Watchdog{Interval: time.Millisecond, PID: pid}.Wait(t.Context()))
}
