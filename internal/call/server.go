package call

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// margin is what the server may take to end beside the grace that it gives
	// its sandboxes. A CI system kills about ten seconds after its SIGTERM.
	margin = 3 * time.Second
	// stderrTime bounds the wait for the end of the server's stderr when
	// something else holds it open.
	stderrTime = 2 * time.Second
)

// server is the front end as a child of this process.
type server struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *os.File
	exited chan struct{}
	err    error // of its end, once exited is closed
}

// startServer starts the front end. It has a process group of its own: the
// interrupt of a terminal goes to us, and we end the server in order.
func startServer(binary string, flags []string, dir string, stderr io.Writer) (*server, error) {
	s := &server{cmd: exec.Command(binary, flags...), exited: make(chan struct{})}
	s.cmd.Dir, s.cmd.Stderr, s.cmd.WaitDelay = dir, stderr, stderrTime
	ownGroup(s.cmd)
	var err error
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	out, in, err := os.Pipe() // not StdoutPipe, which Wait closes before its end is read
	if err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	s.stdout, s.cmd.Stdout = out, in
	err = s.cmd.Start()
	err = errors.Join(err, in.Close())
	if s.cmd.Process == nil {
		return nil, fmt.Errorf("start the server: %w", errors.Join(err, out.Close(), s.stdin.Close()))
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.exited)
	}()
	return s, nil
}

func (s *server) transport() mcp.Transport {
	// Closing stdin ends the server, and with it stdout: it is read to its end.
	return &mcp.IOTransport{Reader: io.NopCloser(s.stdout), Writer: s.stdin}
}

// terminate asks the server to end now, sandboxes and all.
func (s *server) terminate() {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		_ = s.cmd.Process.Kill() // a system without the signal, or it has ended
	}
}

// stop ends the server: the end of its stdin, SIGTERM, SIGKILL, each with the
// time to obey. terminated says that the SIGTERM was sent. The server's sandboxes
// end with it whatever happens. The error says how it ended if that was not in
// order.
func (s *server) stop(session *mcp.ClientSession, terminated bool, grace time.Duration) error {
	grace += margin
	closed := make(chan struct{})
	go func() { // ends with the server
		defer close(closed)
		if session != nil {
			_ = session.Close()
		}
		_ = s.stdin.Close()
		<-s.exited
	}()
	rungs := []func(){s.terminate, func() { _ = s.cmd.Process.Kill() }}
	if terminated {
		rungs = rungs[1:]
	}
	for _, next := range rungs {
		timer := time.NewTimer(grace)
		select {
		case <-closed:
			timer.Stop()
			return errors.Join(s.err, s.stdout.Close())
		case <-timer.C:
			next()
		}
	}
	<-s.exited
	err := s.stdout.Close() // whoever else holds its other end
	<-closed
	return errors.Join(s.err, err)
}
