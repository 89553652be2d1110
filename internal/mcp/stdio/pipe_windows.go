package stdio

import "syscall"

// The numbers are ERROR_NO_DATA, ERROR_PIPE_NOT_CONNECTED, WSAECONNABORTED and
// WSAESHUTDOWN.
var brokenPipe = []error{
	syscall.EPIPE, syscall.ERROR_BROKEN_PIPE, syscall.Errno(232), syscall.Errno(233),
	syscall.WSAECONNRESET, syscall.Errno(10053), syscall.Errno(10058),
}

// CatchBrokenPipe does nothing: Windows has no SIGPIPE.
func CatchBrokenPipe() {}
