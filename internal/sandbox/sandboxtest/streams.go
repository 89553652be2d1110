package sandboxtest

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox/wire"
)

// A flood of errors that nobody reads holds the command at the window, and no
// longer once it is given up.
func (s suite) unreadErrors(t *testing.T) {
	box, spec := s.open(t)
	p, err := box.Spawn(t.Context(), s.sh(spec, "echo up; head -c 20000000 /dev/zero >&2; echo done"))
	require.NoError(t, err)
	_, err = io.ReadFull(p.Stdout(), make([]byte, 3))
	require.NoError(t, err)
	select {
	case <-p.Done():
		require.Fail(t, "the command was not held")
	case <-time.After(300 * time.Millisecond):
	}
	p.Discard()
	exit, err := p.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, [3]int64{0, 8, 20000000}, exit.Bytes)
}

// What is written to stdin arrives to the byte, and so does its end.
func (s suite) inputs(t *testing.T) {
	for _, size := range []int{0, 1, 65_535, 65_536, wire.Window, wire.Window + 1, 10_000_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			box, spec := s.open(t)
			p, err := box.Spawn(t.Context(), s.sh(spec, "cat | wc -c"))
			require.NoError(t, err)
			go func() {
				_, _ = p.Stdin().Write(bytes.Repeat([]byte("i"), size))
				_ = p.Stdin().Close()
			}()
			out, err := io.ReadAll(p.Stdout())
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(size), strings.TrimSpace(string(out)))
			exit, err := p.Wait(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, size, exit.Bytes[0])
		})
	}
}

// A command that never reads its input ends all the same, and promptly.
func (s suite) unreadInput(t *testing.T) {
	box, spec := s.open(t)
	p, err := box.Spawn(t.Context(), s.sh(spec, "sleep 1000"))
	require.NoError(t, err)
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = p.Stdin().Write(make([]byte, 10*wire.Window))
	}()
	begin := time.Now()
	exit, err := p.Stop(t.Context())
	require.NoError(t, err)
	require.Equal(t, int(syscall.SIGTERM), exit.Signal)
	<-written // what the command's end let go may still have gone out
	require.Less(t, time.Since(begin), 5*time.Second)
}

// Single bytes on both outputs keep their stream and their order.
func (s suite) interleaved(t *testing.T) {
	box, spec := s.open(t)
	out, err := box.Run(t.Context(), s.sh(spec, "for i in {1..300}; do printf o; printf e >&2; done"))
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("o", 300), string(out.Stdout))
	require.Equal(t, strings.Repeat("e", 300), string(out.Stderr))
}

// A terminal is one, has its size, changes it, and gives the status.
func (s suite) terminal(t *testing.T) {
	box, spec := s.open(t)
	cmd := s.sh(spec, `test -t 0 -a -t 1 -a -t 2 && stty size; trap 'stty size; exit 4' WINCH; echo up; while :; do sleep 0.02; done`)
	cmd.PTY = &wire.Resize{Rows: 33, Cols: 101}
	p, err := box.Spawn(t.Context(), cmd)
	require.NoError(t, err)
	first := make([]byte, len("33 101\r\nup\r\n"))
	_, err = io.ReadFull(p.Stdout(), first)
	require.NoError(t, err)
	require.Equal(t, "33 101\r\nup\r\n", string(first))
	require.NoError(t, p.Resize(wire.Resize{Rows: 44, Cols: 55}))
	rest, err := io.ReadAll(p.Stdout())
	require.NoError(t, err)
	require.Equal(t, "44 55\r\n", string(rest))
	exit, err := p.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, 4, exit.Code)
}
