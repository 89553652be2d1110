package stdio

import "fmt"

// Signal is the cause with which the context of a server is cancelled when its
// process got a signal; the number is the signal's.
type Signal int

func (s Signal) Error() string { return fmt.Sprintf("signal %d", int(s)) }

// Status is the exit status by which a shell tells that signal.
func (s Signal) Status() int { return 128 + int(s) }
