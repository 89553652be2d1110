package sandbox

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox/wire"
)

// A hostile init reaches the forwarded port of this machine and no other.
func TestOnlyTheForwardedPort(t *testing.T) {
	asked, other := listener(t), listener(t)
	result := make(chan wire.Close, 2)
	box, err := open(t, func(f *fakeInit) {
		f.greet()
		f.expect(wire.TypeListen)
		f.json(wire.TypeListening, wire.Listening{Port: portOf(asked)})
		for i, port := range []int{portOf(other), portOf(asked)} {
			stream := wire.FirstInit + 2*uint8(i)
			f.send(wire.TypeOpen, stream, wire.Marshal(wire.Open{Port: port}))
			f.send(wire.TypeEOF, stream, nil)
			frame := f.expect(wire.TypeClose)
			var c wire.Close
			if wire.Unmarshal(frame, &c) != nil || frame.Stream != stream {
				c.Error = "not what was expected"
			}
			result <- c
		}
		f.expect(wire.TypeBye)
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, box.Close(t.Context())) }()
	require.NoError(t, box.Forward(t.Context(), portOf(asked)))
	require.Contains(t, (<-result).Error, "is not forwarded")
	c, err := asked.Accept() // the control: this one is connected
	require.NoError(t, err)
	_, err = io.ReadAll(c)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.Empty(t, (<-result).Error)
	require.ErrorContains(t, box.Forward(t.Context(), portOf(other)), "one is forwarded already")
}

// A port that is taken inside can be asked for again.
func TestForwardRefused(t *testing.T) {
	box, err := open(t, func(f *fakeInit) {
		f.greet()
		f.expect(wire.TypeListen)
		f.json(wire.TypeListening, wire.Listening{Port: 80, Error: "address already in use"})
		f.expect(wire.TypeListen)
		f.json(wire.TypeListening, wire.Listening{Port: 80})
		f.expect(wire.TypeBye)
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, box.Close(t.Context())) }()
	require.ErrorContains(t, box.Forward(t.Context(), 80), "address already in use")
	require.NoError(t, box.Forward(t.Context(), 80))
}

// A connection into a sandbox that goes away ends.
func TestDialEndsWithTheSandbox(t *testing.T) {
	read := make(chan struct{})
	box, err := open(t, func(f *fakeInit) {
		f.greet()
		f.expect(wire.TypeOpen)
		f.send(wire.TypeData, wire.FirstFront, []byte("hello"))
		<-read
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, box.Close(t.Context())) }()
	c, err := box.Dial(80)
	require.NoError(t, err)
	defer c.Close()
	got := make([]byte, 5)
	_, err = io.ReadFull(c, got)
	require.NoError(t, err)
	require.Equal(t, "hello", string(got))
	close(read)
	_, err = c.Read(got)
	require.Error(t, err)
	<-box.Ended()
}

// Frames of connections that break the rules end the sandbox.
func TestHostileConnections(t *testing.T) {
	for name, tt := range map[string]struct {
		send func(*fakeInit)
		want string
	}{
		"listening unasked":       {func(f *fakeInit) { f.json(wire.TypeListening, wire.Listening{Port: 80}) }, "nobody asked for"},
		"open with our number":    {func(f *fakeInit) { f.send(wire.TypeOpen, wire.FirstFront, wire.Marshal(wire.Open{Port: 80})) }, "not the sender's"},
		"data of no connection":   {func(f *fakeInit) { f.send(wire.TypeData, wire.FirstInit, []byte("x")) }, "which is no connection"},
		"credit of no connection": {func(f *fakeInit) { f.send(wire.TypeCredit, wire.FirstInit, wire.AppendUint32(1)) }, "which is no connection"},
	} {
		t.Run(name, func(t *testing.T) {
			err := spawnAndWait(t, func(f *fakeInit) { f.greet(); f.started(); tt.send(f); f.drain() })
			require.ErrorContains(t, err, tt.want)
			var broken *wire.ProtocolError
			require.ErrorAs(t, err, &broken)
		})
	}
}

func listener(t *testing.T) net.Listener {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func portOf(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }
