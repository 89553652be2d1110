// Package relay moves native frames between an MCP client and a child server
// that speaks MCP itself: byte for byte, in both directions, with frames of our
// own only where one message has ended and the next has not begun.
//
// Nothing here interprets a message. A Splitter cuts the child's output into
// lines that a bridge may look at, an Output queues what goes to the client and
// an Input what goes to the child. All three belong to the one goroutine that
// runs the bridge's event loop; the goroutines below them only read or write,
// so that the loop never waits for either end.
package relay

import (
	"bytes"
	"cmp"
	"errors"
	"io"
)

// Bounds of the child's output, in bytes.
const (
	// MaxLine is the longest line that is held until it is complete. A longer
	// one streams through in pieces.
	MaxLine = 10 << 20
	// HeadSize is how much of a line that streams through may be looked at.
	HeadSize = 8 << 10
	// readSize is the largest piece of a line that streams through, but for
	// its first.
	readSize = 64 << 10
)

// Piece is a line of the child's output, or a part of one that is too long to
// hold. Its data is never changed afterwards.
type Piece struct {
	Data []byte // with the LF where it ends the line
	// First and Last say that the line begins and that it ends here. A line
	// that streams when the stream ends has no Last piece.
	First, Last bool
	// Cut says that this is a whole line but for its LF: the stream ended.
	Cut bool
}

// Whole reports whether the piece is all of a line, with its LF or cut.
func (p Piece) Whole() bool { return p.First && (p.Last || p.Cut) }

// Head is the part of the piece that may be looked at: all of a whole line,
// else at most HeadSize bytes.
func (p Piece) Head() []byte {
	if p.Whole() || len(p.Data) <= HeadSize {
		return p.Data
	}
	return p.Data[:HeadSize]
}

// Splitter cuts a byte stream into Pieces. The zero value is ready.
type Splitter struct {
	held      []byte // the beginning of a line whose end has not come
	streaming bool   // the line at hand was too long to hold
	limit     int    // in place of MaxLine, for tests
}

// Feed takes the next bytes of the stream and yields the pieces that they
// complete, until yield returns false. It keeps no reference to chunk.
func (s *Splitter) Feed(chunk []byte, yield func(Piece) bool) bool {
	for len(chunk) > 0 {
		n := bytes.IndexByte(chunk, '\n') + 1
		last := n > 0
		if !last {
			n = len(chunk)
		}
		if !s.take(chunk[:n], last, yield) {
			return false
		}
		chunk = chunk[n:]
	}
	return true
}

// take adds data, which holds no LF but perhaps its last byte.
func (s *Splitter) take(data []byte, last bool, yield func(Piece) bool) bool {
	limit := cmp.Or(s.limit, MaxLine)
	switch {
	case s.streaming:
		s.streaming = !last
		return yield(Piece{Data: bytes.Clone(data), Last: last})
	case last && len(s.held)+len(data) <= limit:
		line := append(s.held, data...)
		s.held = nil
		return yield(Piece{Data: line, First: true, Last: true})
	case len(s.held)+len(data) <= limit:
		s.held = append(s.held, data...)
		return true
	}
	// The line is longer than what is held of any line.
	first := Piece{Data: s.held, First: true}
	if len(first.Data) < HeadSize {
		// Only a chunk longer than the limit comes here: cut a head from it.
		n := min(HeadSize-len(first.Data), len(data)-1)
		first.Data = append(first.Data, data[:n]...)
		data = data[n:]
	}
	s.held, s.streaming = nil, !last
	return yield(first) && yield(Piece{Data: bytes.Clone(data), Last: last})
}

// Rest yields what the end of the stream left of an unterminated line, if
// anything. A line that was streaming has nothing left: its pieces are out.
func (s *Splitter) Rest(yield func(Piece) bool) {
	if len(s.held) > 0 {
		held := s.held
		s.held = nil
		yield(Piece{Data: held, First: true, Cut: true})
	}
}

// Split reads r to its end and yields its pieces until yield returns false.
// The error is that of r, nil at its end.
func Split(r io.Reader, yield func(Piece) bool) error {
	var s Splitter
	buf := make([]byte, readSize)
	for {
		n, err := r.Read(buf)
		if !s.Feed(buf[:n], yield) {
			return nil
		}
		if err != nil {
			s.Rest(yield)
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}
