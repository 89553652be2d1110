package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// Reader reads frames.
type Reader struct {
	r   *bufio.Reader
	hdr [HeaderSize]byte
	buf []byte
}

// NewReader returns a Reader of r.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, HeaderSize+MaxData), buf: make([]byte, MaxData)}
}

// Next returns the next frame of a known type; ignorable ones are skipped. Its
// payload is valid until the next call. The error is io.EOF at a frame's
// boundary, io.ErrUnexpectedEOF inside one, or a *ProtocolError.
func (r *Reader) Next() (Frame, error) {
	for {
		f, err := r.next()
		if err != nil || f.Type.Known() {
			return f, err
		}
	}
}

func (r *Reader) next() (Frame, error) {
	if _, err := io.ReadFull(r.r, r.hdr[:]); err != nil {
		return Frame{}, err
	}
	f := Frame{Type: Type(r.hdr[0]), Stream: r.hdr[1]}
	n := binary.BigEndian.Uint32(r.hdr[4:])
	switch {
	case !f.Type.Known() && f.Type&Ignorable == 0:
		return Frame{}, Errorf("unknown frame %s", f.Type)
	case r.hdr[2] != 0 || r.hdr[3] != 0:
		return Frame{}, Errorf("reserved bits are set in a %s frame", f.Type)
	case f.Stream > LastStream:
		return Frame{}, Errorf("%s frame of stream %d", f.Type, f.Stream)
	case n > uint32(f.Type.max()):
		return Frame{}, Errorf("%s frame of %d bytes, at most %d", f.Type, n, f.Type.max())
	}
	if int(n) > len(r.buf) {
		r.buf = make([]byte, MaxControl)
	}
	f.Payload = r.buf[:n]
	if _, err := io.ReadFull(r.r, f.Payload); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return Frame{}, err
	}
	return f, nil
}
