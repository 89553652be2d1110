package sandboxtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/guest"
)

// Main makes a test binary its own sandbox-init and its own front end, which
// the suite kills. It returns only to run the tests.
func Main(open func() (sandbox.Runtime, error)) {
	if len(os.Args) < 2 {
		return
	}
	switch os.Args[1] {
	case "sandbox-init":
		// Not os.Exit: the race detector would sleep for a second there.
		syscall.Exit(guest.Main(os.Args[2:]))
	case "front-end":
		fmt.Fprintln(os.Stderr, "front end:", frontEnd(open, os.Args[2]))
		os.Exit(1)
	}
}

// frontEnd opens a sandbox, starts a command with daemons, says so, and waits to
// be killed. It returns only with an error.
func frontEnd(open func() (sandbox.Runtime, error), spec string) error {
	rt, err := open()
	if err != nil {
		return err
	}
	var job frontEndJob
	if err := json.Unmarshal([]byte(spec), &job); err != nil {
		return err
	}
	ctx := context.Background()
	box, err := sandbox.Open(ctx, rt, job.Spec, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	p, err := box.Spawn(ctx, sandbox.Command{Argv: []string{"bash", "-c", job.Script}, Env: rt.Environ(job.Spec), Dir: "/"})
	if err != nil {
		return err
	}
	if _, err := io.ReadFull(p.Stdout(), make([]byte, 3)); err != nil { // "up\n"
		return err
	}
	fmt.Println("up")
	select {}
}

type frontEndJob struct {
	Spec   sandbox.Spec
	Script string
}

// startFrontEnd runs a front end in a process of its own, until it is up.
func startFrontEnd(t *testing.T, job frontEndJob) *exec.Cmd {
	b, err := json.Marshal(job)
	require.NoError(t, err)
	cmd := exec.Command("/proc/self/exe", "front-end", string(b))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	ended := false
	t.Cleanup(func() {
		if !ended {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_, err = io.ReadFull(out, make([]byte, 3))
	require.NoError(t, err, "the front end came up")
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	ended = true
	return cmd
}
