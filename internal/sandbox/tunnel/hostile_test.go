package tunnel

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox/wire"
)

// lone is an end whose peer only takes what is sent.
func lone(t testing.TB, dial Dial) (*Tunnel, func()) {
	conn := wire.NewConn(eof{}, io.Discard)
	tun := New(conn, wire.FirstFront, dial)
	return tun, func() {
		tun.Close()
		require.NoError(t, conn.Close())
	}
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// sink takes everything and never says anything, until its end.
func sink(ctx context.Context, _ int) (net.Conn, error) {
	near, far := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, far); _ = far.Close() }()
	context.AfterFunc(ctx, func() { _ = far.Close() })
	return near, nil
}

func open(stream uint8, port int) wire.Frame {
	return wire.Frame{Type: wire.TypeOpen, Stream: stream, Payload: wire.Marshal(wire.Open{Port: port})}
}

// What breaks the rules of a connection is refused as a broken protocol.
func TestHostileFrames(t *testing.T) {
	data := wire.Frame{Type: wire.TypeData, Stream: 4, Payload: []byte("x")}
	eof := wire.Frame{Type: wire.TypeEOF, Stream: 4}
	shut := wire.Frame{Type: wire.TypeClose, Stream: 4, Payload: []byte(`{"error":"x"}`)}
	flood := make([]wire.Frame, 0, 2+wire.Window/wire.MaxData)
	flood = append(flood, open(4, 80))
	for range wire.Window/wire.MaxData + 1 {
		flood = append(flood, wire.Frame{Type: wire.TypeData, Stream: 4, Payload: make([]byte, wire.MaxData)})
	}
	for _, tt := range []struct {
		name   string
		frames []wire.Frame
		want   string
	}{
		{"data of no connection", []wire.Frame{data}, "which is no connection"},
		{"close of no connection", []wire.Frame{shut}, "which is no connection"},
		{"credit of no connection", []wire.Frame{{Type: wire.TypeCredit, Stream: 5, Payload: []byte{0, 0, 0, 1}}}, "which is no connection"},
		{"our number", []wire.Frame{open(3, 80)}, "not the sender's"},
		{"a command's number", []wire.Frame{open(2, 80)}, "not the sender's"},
		{"number in use", []wire.Frame{open(4, 80), open(4, 81)}, "in use"},
		{"port 0", []wire.Frame{open(4, 0)}, "port 0"},
		{"port 65536", []wire.Frame{open(4, 65536)}, "port 65536"},
		{"no JSON", []wire.Frame{{Type: wire.TypeOpen, Stream: 4}}, "open frame of 0 bytes"},
		{"too much credit", []wire.Frame{open(4, 80), {Type: wire.TypeCredit, Stream: 4, Payload: []byte{0, 0, 0, 1}}}, "exceeds the window"},
		{"short credit", []wire.Frame{open(4, 80), {Type: wire.TypeCredit, Stream: 4}}, "want 4"},
		{"data after its end", []wire.Frame{open(4, 80), eof, data}, "after its end"},
		{"more than its credit", flood, "beyond its credit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			hold := func(ctx context.Context, _ int) (net.Conn, error) {
				<-ctx.Done()
				return nil, errors.New("given up")
			}
			tun, end := lone(t, hold)
			defer end()
			var err error
			for i, f := range tt.frames {
				err = tun.Handle(f)
				if i < len(tt.frames)-1 {
					require.NoError(t, err)
				}
			}
			var broken *wire.ProtocolError
			require.ErrorAs(t, err, &broken)
			require.Contains(t, err.Error(), tt.want)
		})
	}
}

// Whatever frames come, nothing hangs, nothing grows beyond its bound, and the
// end leaves nothing.
func FuzzHandle(f *testing.F) {
	f.Add([]byte{byte(wire.TypeOpen), 4, byte(wire.TypeData), 4, byte(wire.TypeEOF), 4, byte(wire.TypeClose), 4, byte(wire.TypeOpen), 4})
	f.Add([]byte{byte(wire.TypeOpen), 6, byte(wire.TypeCredit), 6, byte(wire.TypeClose), 6, byte(wire.TypeData), 6})
	f.Fuzz(func(t *testing.T, script []byte) {
		tun, end := lone(t, sink)
		defer end()
		for ; len(script) >= 2; script = script[2:] {
			frame := wire.Frame{Type: wire.Type(script[0]), Stream: script[1]}
			switch frame.Type {
			case wire.TypeOpen:
				frame.Payload = wire.Marshal(wire.Open{Port: 1 + int(script[1])})
			case wire.TypeClose:
				frame.Payload = wire.Marshal(wire.Close{Error: []string{"", "cut"}[script[1]&1]})
			case wire.TypeCredit:
				frame.Payload = wire.AppendUint32(uint32(script[1]))
			case wire.TypeData:
				frame.Payload = make([]byte, int(script[1])<<8)
			}
			if !Carries(frame) {
				continue
			}
			if err := tun.Handle(frame); err != nil {
				var broken *wire.ProtocolError
				require.ErrorAs(t, err, &broken)
				return
			}
			require.LessOrEqual(t, tun.Open(), wire.MaxConns+1)
		}
	})
}
