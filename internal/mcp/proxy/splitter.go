package proxy

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"sync"
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
	// Begun says that a line has begun and that none of it can be passed on
	// yet. Such a piece has no data. Behind says the same of the line that
	// follows the last byte of this piece.
	Begun, Behind bool
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

// Splitter cuts a byte stream into Pieces. The zero value is ready. Held may be
// called from another goroutine.
type Splitter struct {
	mu        sync.Mutex // of held
	held      []byte     // the beginning of a line whose end has not come
	streaming bool       // the line at hand was too long to hold
	limit     int        // in place of MaxLine, for tests
}

// Held returns a copy of what is held of a line whose end has not come.
func (s *Splitter) Held() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.held)
}

// hold changes what is held and returns what was.
func (s *Splitter) hold(data []byte) (before []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.held = s.held, data
	return before
}

// Feed takes the next bytes of the stream and yields the pieces that they
// complete, until yield returns false. It keeps no reference to chunk.
func (s *Splitter) Feed(chunk []byte, yield func(Piece) bool) bool {
	first := true
	for len(chunk) > 0 {
		n := bytes.IndexByte(chunk, '\n') + 1
		last := n > 0
		if !last {
			n = len(chunk)
		}
		rest := chunk[n:]
		behind := last && len(rest) > 0 && bytes.IndexByte(rest, '\n') < 0
		begun := !last && first // else a piece before it has said so
		if !s.take(chunk[:n], last, behind, begun, yield) {
			return false
		}
		chunk, first = rest, false
	}
	return true
}

// take adds data, which holds no LF but perhaps its last byte.
func (s *Splitter) take(data []byte, last, behind, begun bool, yield func(Piece) bool) bool {
	limit := cmp.Or(s.limit, MaxLine)
	switch {
	case s.streaming:
		s.streaming = !last
		return yield(Piece{Data: bytes.Clone(data), Last: last, Behind: behind})
	case last && len(s.held)+len(data) <= limit:
		line := append(s.hold(nil), data...)
		return yield(Piece{Data: line, First: true, Last: true, Behind: behind})
	case len(s.held)+len(data) <= limit:
		begun = begun && len(s.held) == 0
		s.hold(append(s.held, data...))
		return !begun || yield(Piece{Begun: true})
	}
	// The line is longer than what is held of any line.
	first := Piece{Data: s.held, First: true}
	if len(first.Data) < HeadSize {
		// Only a chunk longer than the limit comes here: cut a head from it.
		n := min(HeadSize-len(first.Data), len(data)-1)
		first.Data = append(first.Data, data[:n]...)
		data = data[n:]
	}
	s.hold(nil)
	s.streaming = !last
	return yield(first) && yield(Piece{Data: bytes.Clone(data), Last: last, Behind: behind})
}

// Rest yields what the end of the stream left of an unterminated line, if
// anything. A line that was streaming has nothing left: its pieces are out.
func (s *Splitter) Rest(yield func(Piece) bool) {
	if held := s.hold(nil); len(held) > 0 {
		yield(Piece{Data: held, First: true, Cut: true})
	}
}

// Split reads r to its end and yields its pieces until yield returns false.
// The error is that of r, nil at its end.
func Split(r io.Reader, yield func(Piece) bool) error { return new(Splitter).Split(r, yield) }

// Split is the function of that name with the Splitter s, which must be new.
func (s *Splitter) Split(r io.Reader, yield func(Piece) bool) error {
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
