package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// raw is a header as it stands on the wire, with n bytes of payload.
func raw(t Type, stream uint8, reserved uint16, length, n int) []byte {
	b := []byte{byte(t), stream}
	b = binary.BigEndian.AppendUint16(b, reserved)
	b = binary.BigEndian.AppendUint32(b, uint32(length))
	return append(b, make([]byte, n)...)
}

func TestReaderBounds(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []byte
		want string // a part of the error; empty means that the frame is read
	}{
		{"empty control", raw(TypeBye, 0, 0, 0, 0), ""},
		{"largest data", raw(TypeData, Stderr, 0, MaxData, MaxData), ""},
		{"data one too long", raw(TypeData, Stdout, 0, MaxData+1, MaxData+1), "data frame of 65537 bytes, at most 65536"},
		{"largest control", raw(TypeCollected, 0, 0, MaxControl, MaxControl), ""},
		{"control one too long", raw(TypeFile, 0, 0, MaxControl+1, 0), "file frame of 1048577 bytes, at most 1048576"},
		{"length 2^32-1", raw(TypeHello, 0, 0, 1<<32-1, 0), "hello frame of 4294967295 bytes"},
		{"type 0", raw(0, 0, 0, 0, 0), "unknown frame type 0"},
		{"unknown", raw(TypeClose+1, 0, 0, 0, 0), "unknown frame type 21"},
		{"last without the ignorable bit", raw(0x7f, 0, 0, 0, 0), "unknown frame type 127"},
		{"ignorable, then known", append(raw(0xff, 0, 0, 5, 5), raw(TypeBye, 0, 0, 0, 0)...), ""},
		{"ignorable too long", raw(0x80, 0, 0, MaxControl+1, 0), "type 128 frame of 1048577 bytes"},
		{"ignorable with reserved bits", raw(0x80, 0, 1, 0, 0), "reserved bits"},
		{"reserved low", raw(TypePing, 0, 1, 8, 8), "reserved bits are set in a ping frame"},
		{"reserved high", raw(TypePing, 0, 0x8000, 8, 8), "reserved bits"},
		{"last stream", raw(TypeData, LastStream, 0, 1, 1), ""},
		{"stream beyond the last", raw(TypeData, LastStream+1, 0, 1, 1), "data frame of stream 131"},
		{"stream 255", raw(TypePing, 255, 0, 8, 8), "ping frame of stream 255"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := NewReader(bytes.NewReader(tt.in)).Next()
			if tt.want == "" {
				require.NoError(t, err)
				require.True(t, f.Type.Known())
				return
			}
			var broken *ProtocolError
			require.ErrorAs(t, err, &broken)
			require.Contains(t, err.Error(), tt.want)
		})
	}
}

// An end at a frame's boundary is regular, one inside a frame is not.
func TestReaderEnds(t *testing.T) {
	frame := appendFrame(nil, Frame{Type: TypeData, Stream: 1, Payload: []byte("abc")})
	for n := range len(frame) {
		_, err := NewReader(bytes.NewReader(frame[:n])).Next()
		if n == 0 {
			require.Equal(t, io.EOF, err)
		} else {
			require.Equal(t, io.ErrUnexpectedEOF, err, "%d bytes", n)
		}
	}
	_, err := NewReader(iotest.ErrReader(errors.New("broken"))).Next()
	require.EqualError(t, err, "broken")
}

// A length that the peer only claims costs no memory beyond one frame.
func TestReaderAllocatesOneFrame(t *testing.T) {
	r := NewReader(bytes.NewReader(raw(TypeFile, 0, 0, MaxControl, 10)))
	_, err := r.Next()
	require.Equal(t, io.ErrUnexpectedEOF, err)
	require.Len(t, r.buf, MaxControl)
}

func drawFrame(t *rapid.T) Frame {
	f := Frame{Type: Type(rapid.IntRange(int(TypeHello), int(TypeError)).Draw(t, "type")), Stream: uint8(rapid.IntRange(0, 2).Draw(t, "stream"))}
	n := rapid.SampledFrom([]int{0, 1, 7, 8, 9, 4096, MaxData - 1, MaxData}).Draw(t, "length")
	f.Payload = bytes.Repeat([]byte{byte(rapid.IntRange(0, 255).Draw(t, "fill"))}, n)
	return f
}

// chunks reads as the given sizes say, over and over.
type chunks struct {
	r     io.Reader
	sizes []int
	i     int
}

func (c *chunks) Read(p []byte) (int, error) {
	n := c.sizes[c.i%len(c.sizes)]
	c.i++
	return c.r.Read(p[:min(n, len(p))])
}

func TestFramesSurviveChunking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frames := rapid.SliceOfN(rapid.Custom(drawFrame), 1, 8).Draw(t, "frames")
		var b []byte
		for _, f := range frames {
			b = appendFrame(b, f)
			if rapid.Bool().Draw(t, "ignorable after it") {
				b = appendFrame(b, Frame{Type: Ignorable | 3, Payload: []byte("later version")})
			}
		}
		sizes := rapid.SliceOfN(rapid.IntRange(1, 5000), 1, 6).Draw(t, "chunks")
		r := NewReader(&chunks{r: bytes.NewReader(b), sizes: sizes})
		for i, want := range frames {
			got, err := r.Next()
			if err != nil {
				t.Fatalf("frame %d: %v", i, err)
			}
			if got.Type != want.Type || got.Stream != want.Stream || !bytes.Equal(got.Payload, want.Payload) {
				t.Fatalf("frame %d: %s/%d of %d bytes, want %s/%d of %d", i, got.Type, got.Stream, len(got.Payload),
					want.Type, want.Stream, len(want.Payload))
			}
		}
		if _, err := r.Next(); err != io.EOF {
			t.Fatalf("after the last frame: %v", err)
		}
	})
}

func FuzzReader(f *testing.F) {
	f.Add([]byte{})
	f.Add(raw(TypeBye, 0, 0, 0, 0))
	f.Add(raw(TypeData, 2, 0, 4, 4))
	f.Add(raw(0x85, 0, 0, 1, 1))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := NewReader(bytes.NewReader(in))
		var total int
		for {
			frame, err := r.Next()
			if err != nil {
				var broken *ProtocolError
				require.True(t, err == io.EOF || err == io.ErrUnexpectedEOF || errors.As(err, &broken), "%v", err)
				return
			}
			require.True(t, frame.Type.Known())
			require.LessOrEqual(t, frame.Stream, LastStream)
			require.LessOrEqual(t, len(frame.Payload), frame.Type.max())
			total += HeaderSize + len(frame.Payload)
			require.LessOrEqual(t, total, len(in))
		}
	})
}

func TestTypeNames(t *testing.T) {
	assert.Equal(t, "hello", TypeHello.String())
	assert.Equal(t, "error", TypeError.String())
	assert.Equal(t, "type 200", Type(200).String())
	assert.Equal(t, "close", TypeClose.String())
	assert.Len(t, typeNames, int(TypeClose)+1)
}
