package docker

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/docker/docker/api/types"

	"mcpagents/internal/sandbox/tail"
)

// maxStderrFrame bounds one piece of init's diagnostics.
const maxStderrFrame = 1 << 20

// stream is the attachment to a container without a terminal. The engine
// multiplexes stdout and stderr by headers of 8 bytes; stdout is the stream to
// init, stderr its diagnostics.
type stream struct {
	conn types.HijackedResponse
	diag *tail.Buffer
	left int // of the stdout frame being read

	once sync.Once
}

// Read returns stdout bytes and takes stderr aside.
func (s *stream) Read(p []byte) (int, error) {
	for s.left == 0 {
		if err := s.header(); err != nil {
			return 0, err
		}
	}
	n, err := s.conn.Reader.Read(p[:min(len(p), s.left)])
	s.left -= n
	if err == io.EOF && s.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (s *stream) header() error {
	var h [8]byte
	if _, err := io.ReadFull(s.conn.Reader, h[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(h[4:])
	switch {
	case h[1] != 0 || h[2] != 0 || h[3] != 0:
		return fmt.Errorf("attach: malformed header %x: is the container using a terminal?", h)
	case h[0] == 1:
		s.left = int(n)
		return nil
	case h[0] == 2 && n <= maxStderrFrame:
		_, err := io.CopyN(s.diag, s.conn.Reader, int64(n))
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	default:
		return fmt.Errorf("attach: %d bytes of unknown stream %d", n, h[0])
	}
}

func (s *stream) Write(p []byte) (int, error) { return s.conn.Conn.Write(p) }

func (s *stream) Close() error {
	s.once.Do(s.conn.Close)
	return nil
}
