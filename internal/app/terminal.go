package app

import (
	"log/slog"
	"os"
)

// warnOfTerminal says when the server's stdin or stdout is a terminal, of which
// `docker run -it` makes one. A terminal turns LF into CR LF and echoes what it
// is given, so that a client's session breaks without a reason; a person who
// started the server to see what it does learns that nothing will come.
func warnOfTerminal(stdin, stdout *os.File, log *slog.Logger) {
	name := "stdin"
	switch {
	case isTerminal(stdin):
	case isTerminal(stdout):
		name = "stdout"
	default:
		return
	}
	log.Warn(name + " is a terminal: an MCP client speaks over pipes; use `docker run -i` without -t")
}
