package guest

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox/wire"
)

// freePort is a port of loopback that was free a moment ago.
func freePort(t *testing.T) int {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// listen asks for a port and returns the answer.
func (p *peer) listen(port int) (answer wire.Listening) {
	p.t.Helper()
	p.json(wire.TypeListen, wire.Listen{Port: port})
	require.NoError(p.t, wire.Unmarshal(p.want(wire.TypeListening), &answer))
	return answer
}

// What connects to the port becomes a stream of frames, the end of its input an
// end of that stream, and a close of ours a reset; before, while and after a
// command runs.
func TestListen(t *testing.T) {
	p := startInit(t, "sandbox-init", nil)
	p.greet(hello())
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	require.Contains(t, p.listen(taken.Addr().(*net.TCPAddr).Port).Error, "address already in use")
	port := freePort(t)
	require.Equal(t, wire.Listening{Port: port}, p.listen(port))
	for _, between := range []func(){func() {}, func() { p.run(bash("true")) }, func() { p.spawn(bash("sleep 50")) }} {
		between()
		c, err := net.DialTimeout("tcp4", loopback(port), patience)
		require.NoError(t, err)
		require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
		open := p.want(wire.TypeOpen)
		require.Equal(t, wire.FirstInit, open.Stream)
		require.JSONEq(t, string(wire.Marshal(wire.Open{Port: port})), string(open.Payload))
		_, err = io.WriteString(c, "hello")
		require.NoError(t, err)
		require.NoError(t, c.(*net.TCPConn).CloseWrite())
		require.Equal(t, "hello", string(p.want(wire.TypeData).Payload))
		p.want(wire.TypeEOF)
		p.send(wire.TypeData, wire.FirstInit, []byte("answer"))
		_, err = io.ReadFull(c, make([]byte, 6))
		require.NoError(t, err)
		p.onStream(wire.TypeClose, wire.FirstInit, wire.Close{Error: "enough"})
		_, err = c.Read(make([]byte, 1))
		require.Error(t, err)
		require.NotErrorIs(t, err, io.EOF, "cut off, not ended")
		p.want(wire.TypeClose)
		require.NoError(t, c.Close())
	}
}

// What the front end opens is connected, or closed with the reason.
func TestOpen(t *testing.T) {
	p := startInit(t, "sandbox-init", nil)
	p.greet(hello())
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	p.onStream(wire.TypeOpen, 5, wire.Open{Port: l.Addr().(*net.TCPAddr).Port})
	p.send(wire.TypeData, 5, []byte("early")) // nothing is waited for
	p.send(wire.TypeEOF, 5, nil)
	c, err := l.Accept()
	require.NoError(t, err)
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, "early", string(got))
	require.NoError(t, c.Close())
	p.want(wire.TypeEOF)
	require.Equal(t, "{}", string(p.want(wire.TypeClose).Payload))
	p.onStream(wire.TypeClose, 5, wire.Close{})

	p.onStream(wire.TypeOpen, 5, wire.Open{Port: freePort(t)})
	var closed wire.Close
	require.NoError(t, wire.Unmarshal(p.want(wire.TypeClose), &closed))
	require.True(t, strings.Contains(closed.Error, "refused"), closed.Error)
}

func (p *peer) onStream(t wire.Type, stream uint8, v any) { p.send(t, stream, wire.Marshal(v)) }
