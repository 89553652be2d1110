package browser

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"mcpagents/internal/mcp/proxy"
	"mcpagents/internal/provider/browser/lease"
)

const (
	// maxStderrLine is where a line of the downstream's stderr is cut for the log.
	maxStderrLine = 8 << 10
	// tailLines is how many of them are kept for the error that a caller gets
	// when the downstream ends before it has answered initialize.
	tailLines = 5
)

// session is one downstream, as the event loop sees it.
type session struct {
	*proxy.Run
	long *longLine // a line that is too long to hold
	tail []string  // of stderr
}

func newSession(child *lease.Child, number int) *session {
	process := proxy.Process{Stdin: child.Stdin, Stdout: child.Stdout, Stderr: child.Stderr, Wait: child.Wait, Close: child.Close}
	return &session{Run: proxy.Follow(process, number, readLines)}
}

// ending says how the child ended.
func (s *session) ending() string {
	return s.End.Reason("chrome-devtools-mcp", fmt.Sprintf("signal %d", s.End.Exit.Signal))
}

// readLines yields the lines of r, each cut at maxStderrLine.
func readLines(r io.Reader, yield func([]byte) bool) {
	lines := bufio.NewReaderSize(r, maxStderrLine)
	for cut := false; ; {
		line, more, err := lines.ReadLine()
		if err != nil {
			return
		}
		if !cut && !yield([]byte(string(line))) {
			return
		}
		cut = more
	}
}

// fromStderr logs a line of the downstream.
func (b *bridge) fromStderr(line []byte, ok bool) {
	s := b.session
	if !ok {
		s.StderrClosed = true
		b.outputEnded()
		return
	}
	text := strings.TrimRight(strings.ToValidUTF8(string(line), "\ufffd"), " \t\r")
	if s.tail = append(s.tail, text); len(s.tail) > tailLines {
		s.tail = s.tail[1:]
	}
	b.log.Info("[chrome-devtools] " + text)
}
