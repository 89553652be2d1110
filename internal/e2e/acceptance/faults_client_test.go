package acceptance

import (
	"strings"
	"time"

	"mcpagents/internal/testkit/wait"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A Codex that does not leave at the end of its input is given a moment.
var impatient = []string{"--codex_cancel_grace", "0.1"}

// clientFaults are those of the MCP client: it leaves, or stops reading.
var clientFaults = []fault{
	{name: "client closes its input", do: closeInput, status: []int{0}},
	{name: "client closes its input during a call", prompt: stallingCall, do: closeInput, status: []int{0}, args: impatient},
	{name: "client closes its output", prompt: stallingCall, do: closeOutput, status: []int{0}},
	// The front end leaves it some seconds to read what is owed.
	{name: "client never reads, CLI floods, client closes its input", prompt: floodingCall, silent: true, do: func(c *client) {
		c.untilFull()
		c.begin()
		closeInput(c)
	}, longer: 3 * time.Second, status: []int{0}, args: impatient},
	{name: "client never reads, CLI floods, client goes", prompt: floodingCall, silent: true, do: func(c *client) {
		c.untilFull()
		c.begin()
		closeInput(c)
		_ = c.out.Close()
	}, status: []int{0}, args: impatient},
	{name: "client never reads and never leaves, front end gets SIGTERM", prompt: floodingCall, silent: true, do: func(c *client) {
		c.untilFull()
		c.begin()
		signalled(unix.SIGTERM)(c)
	}, longer: 3 * time.Second, status: []int{143}},
	{name: "client sends 20 MB that the CLI never reads, then cancels and leaves", prompt: deafCall, do: func(c *client) {
		c.sendMuch()
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		c.begin()
		closeInput(c)
	}, status: []int{0}, args: impatient},
	{name: "client sends 20 MB that the CLI never reads, front end gets SIGKILL", prompt: deafCall, do: func(c *client) {
		c.sendMuch()
		c.begin()
		signalled(unix.SIGKILL)(c)
	}, status: []int{137}},
}

var (
	floodingCall = script(up, `{"do":"stdout","bytes":500000000}`, stall)
	deafCall     = script(deaf, up, stall)
)

func closeInput(c *client) { _ = c.in.Close() }

// closeOutput goes away as a client that crashed does, then makes the front
// end write.
func closeOutput(c *client) {
	_ = c.out.Close()
	_, _ = c.in.Write([]byte(`{"jsonrpc":"2.0","id":"late","method":"ping"}` + "\n"))
}

// untilFull waits until the front end cannot write more.
func (c *client) untilFull() {
	c.t.Helper()
	wait.Until(c.t, func() bool {
		n := 0
		raw, err := c.out.SyscallConn()
		require.NoError(c.t, err)
		require.NoError(c.t, raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }))
		require.NoError(c.t, err)
		return n > 60<<10
	})
}

// sendMuch sends 20 MB in messages that need no answer.
func (c *client) sendMuch() {
	c.t.Helper()
	message := `{"jsonrpc":"2.0","method":"notifications/much","params":{"data":"` + strings.Repeat("m", 1<<20) + `"}}`
	for range 20 {
		c.send(message)
	}
}
