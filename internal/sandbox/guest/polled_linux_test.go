package guest

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// kept are two files of one descriptor each, as a process's stdin is: were one of
// them closed, the other would later close a stranger.
var kept []*os.File

// Init's stream waits in the poller, however the pipe was handed over: only such
// a file takes a deadline, and none of them reads "try again".
func TestPolled(t *testing.T) {
	for name, flags := range map[string]int{"a pipe that blocks": 0, "a pipe that does not": unix.O_NONBLOCK} {
		t.Run(name, func(t *testing.T) {
			var ends [2]int
			require.NoError(t, unix.Pipe2(ends[:], unix.O_CLOEXEC|flags))
			in := os.NewFile(uintptr(ends[0]), "in")
			out := polled(in)
			kept = append(kept, in, out)
			require.NoError(t, out.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
			_, err := out.Read(make([]byte, 1))
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		})
	}
}
