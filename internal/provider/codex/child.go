package codex

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"mcpagents/internal/mcp/proxy"
)

// Child is a running codex mcp-server in a sandbox of its own.
type Child struct {
	proxy.Process // Close also writes a changed login back
	// Invalidate, if set, is called once when the login proved not valid, so
	// that nothing of it is written back.
	Invalidate func()
	// Version is Codex's own, such as 0.153.4; empty if it is not known.
	Version string
	// Agents says that this version has the setting agents.enabled.
	Agents bool
}

// Launcher starts a Codex. The context bounds the launch only, not the child; a
// Launcher returns soon after it ends.
type Launcher func(ctx context.Context) (*Child, error)

// LaunchError is a failed launch with a text for the caller of a tool: what is
// wrong and what to do about it.
type LaunchError struct {
	Text string
	Err  error // for the log; may be nil
}

func (e *LaunchError) Error() string {
	if e.Err == nil {
		return e.Text
	}
	return fmt.Sprintf("%s: %v", e.Text, e.Err)
}

func (e *LaunchError) Unwrap() error { return e.Err }

// remedy is the text for the caller of a tool about a Codex that does not serve.
func remedy(err error) string {
	if launch, ok := errors.AsType[*LaunchError](err); ok {
		return launch.Text
	}
	if late, ok := errors.AsType[*proxy.LateError](err); ok {
		return fmt.Sprintf("Codex started but has not answered initialize within %s; if it is only slow, raise --handshake_timeout", late.After)
	}
	if errors.Is(err, proxy.ErrRefused) {
		return "Codex refused the client's initialize"
	}
	return err.Error()
}

// tailSize is how much of Codex's stderr is kept, in bytes.
const tailSize = 4 << 10

// session is one child, as the event loop sees it.
type session struct {
	*proxy.Run
	child *Child

	dropping  bool     // the native line at hand is not for the client
	streaming *request // the request that the native line at hand answers
	tail      []byte   // of stderr
}

// Launch starts a Codex.
func (b *bridge) Launch(ctx context.Context) (proxy.Started, error) {
	child, err := b.cfg.Launch(ctx)
	if err != nil {
		return proxy.Started{}, err
	}
	return proxy.Started{Process: child.Process, ReadStderr: readChunks, Accept: func(run *proxy.Run) {
		b.session = &session{Run: run, child: child}
	}}, nil
}

// readChunks yields what r gives as it comes.
func readChunks(r io.Reader, yield func([]byte) bool) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 && !yield([]byte(string(buf[:n]))) || err != nil {
			return
		}
	}
}

func (s *session) keepTail(chunk []byte) {
	s.tail = append(s.tail, chunk...)
	if n := len(s.tail) - tailSize; n > 0 {
		s.tail = append(s.tail[:0], s.tail[n:]...)
	}
}

// NotServed explains the end with the last line of stderr.
func (b *bridge) NotServed() error {
	s := b.session
	tail := strings.TrimSpace(strings.ToValidUTF8(string(s.tail), "?"))
	if strings.Contains(tail, "stdin is not a terminal") {
		version := s.child.Version
		if version == "" {
			version = "of an unknown version"
		}
		return &LaunchError{Text: "the Codex CLI " + version + " has no mcp-server command: " +
			"use an image with Codex 0.153.4 or earlier (0.154.0 removed the command)"}
	}
	text := "Codex ended before it answered initialize (" + b.Ending() + ")"
	if tail != "" {
		text += ": " + tail[strings.LastIndexByte(tail, '\n')+1:]
	}
	return &LaunchError{Text: text}
}
