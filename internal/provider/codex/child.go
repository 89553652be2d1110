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

// remedy is the text of a launch error for the caller of a tool.
func remedy(err error) string {
	if launch, ok := errors.AsType[*LaunchError](err); ok {
		return launch.Text
	}
	return err.Error()
}

// tailSize is how much of Codex's stderr is kept, in bytes.
const tailSize = 4 << 10

// session is one child, as the event loop sees it.
type session struct {
	*proxy.Run
	child *Child

	midLine   bool         // a line of its stdout has begun and not ended
	dropping  bool         // the native line at hand is not for the client
	streaming *request     // the request that the native line at hand answers
	tail      []byte       // of stderr
	readiness *proxy.Alarm // by when it must have answered initialize
}

func newSession(child *Child, number int) *session {
	return &session{Run: proxy.Follow(child.Process, number, readChunks), child: child}
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

// ending says how the child ended.
func (s *session) ending() string { return s.End.Reason("codex", signalName(s.End.Exit.Signal)) }

func (s *session) keepTail(chunk []byte) {
	s.tail = append(s.tail, chunk...)
	if n := len(s.tail) - tailSize; n > 0 {
		s.tail = append(s.tail[:0], s.tail[n:]...)
	}
}

// failure is why a session that ended before it served did so, as a launch error.
func (s *session) failure() error {
	tail := strings.TrimSpace(strings.ToValidUTF8(string(s.tail), "?"))
	if strings.Contains(tail, "stdin is not a terminal") {
		version := s.child.Version
		if version == "" {
			version = "of an unknown version"
		}
		return &LaunchError{Text: "the Codex CLI " + version + " has no mcp-server command: " +
			"use an image with Codex 0.153.4 or earlier (0.154.0 removed the command)"}
	}
	text := "Codex ended before it answered initialize (" + s.ending() + ")"
	if tail != "" {
		text += ": " + tail[strings.LastIndexByte(tail, '\n')+1:]
	}
	return &LaunchError{Text: text}
}
