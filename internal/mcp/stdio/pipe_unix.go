//go:build !windows

package stdio

import (
	"os"
	"os/signal"
	"syscall"
)

var brokenPipe = []error{syscall.EPIPE, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.ESHUTDOWN}

// CatchBrokenPipe makes a write to a closed standard output return an error
// instead of ending the process by SIGPIPE. The signal is caught and not
// ignored, because children inherit an ignored one.
func CatchBrokenPipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
