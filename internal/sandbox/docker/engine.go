package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/client"
)

// callTimeout bounds every call to the engine but the stream and the pull.
const callTimeout = 20 * time.Second

// createTimeout bounds what remains of a container's creation when its caller
// has left.
const createTimeout = 3 * time.Second

// EngineProblem says which of four things is wrong with the engine.
type EngineProblem uint8

// The problems of an engine.
const (
	EngineAbsent  EngineProblem = iota + 1 // no socket, no such host
	EngineRefused                          // nothing listens
	EngineDenied                           // no permission on the socket
	EngineSilent                           // connected, no answer in time
)

var remedies = map[EngineProblem]string{
	EngineAbsent:  "no Docker engine at %s: install and start Docker, or name its address in DOCKER_HOST",
	EngineRefused: "the Docker engine at %s is not running: start it (for example `systemctl start docker`)",
	EngineDenied:  "no permission to use the Docker engine at %s: add your user to the group that owns the socket (for example `usermod -aG docker $USER`, then log in again)",
	EngineSilent:  "the Docker engine at %s does not answer: restart it",
}

// EngineError says that the engine cannot be used, and what to do.
type EngineError struct {
	Problem EngineProblem
	Host    string
	Found   string // how the address was found; may be empty
	Cause   error
}

func (e *EngineError) Error() string {
	where := e.Host
	if e.Found != "" {
		where += " (" + e.Found + ")"
	}
	return fmt.Sprintf(remedies[e.Problem], where)
}

func (e *EngineError) Unwrap() error { return e.Cause }

// engineError names the problem behind a failed call, or returns err as it is
// when the engine itself answered.
func engineError(host string, err error) error {
	if err == nil {
		return nil
	}
	problem := EngineProblem(0)
	var dns *net.DNSError
	text := err.Error() // the client flattens some causes into text
	switch {
	case errors.Is(err, fs.ErrPermission), strings.Contains(text, "permission denied while trying to connect"):
		problem = EngineDenied
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		problem = EngineSilent
	case errors.Is(err, syscall.ECONNREFUSED):
		problem = EngineRefused
	case errors.Is(err, fs.ErrNotExist), errors.As(err, &dns):
		problem = EngineAbsent
	case client.IsErrConnectionFailed(err):
		problem = connectionProblem(host)
	default:
		return err
	}
	return &EngineError{Problem: problem, Host: host, Cause: err}
}

// connectionProblem looks at a socket that the client could not connect to.
func connectionProblem(host string) EngineProblem {
	path, ok := strings.CutPrefix(host, "unix://")
	if !ok {
		return EngineRefused
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return EngineAbsent
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = conn.Close()
		return EngineSilent
	}
	if errors.Is(err, fs.ErrPermission) {
		return EngineDenied
	}
	return EngineRefused
}

// ImageError says that the image of a sandbox cannot be used.
type ImageError struct {
	Ref, Text string
	// Pulled: only [Runtime.Look] lacks it, since the first sandbox has it pulled.
	Pulled bool
}

func (e *ImageError) Error() string { return fmt.Sprintf("image %s %s", e.Ref, e.Text) }

// gone reports whether err means that the container is not there any more.
func gone(err error) bool { return errdefs.IsNotFound(err) }
