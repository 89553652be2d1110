package stdio

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"mcpagents/internal/mcp"
)

const readBuffer = 64 << 10

// ReaderOptions say what a [Reader] does with its input. The zero value suits
// a server that parses what it reads.
type ReaderOptions struct {
	// MaxMessage is the longest message in bytes; 0 means [DefaultMaxMessage].
	MaxMessage int

	// KeepBlank yields blank lines instead of skipping them, for a bridge that
	// forwards every line.
	KeepBlank bool

	// LinesOnly turns the detection of frames off, for a program that is known
	// to write lines and whose log text must not be taken for a header.
	LinesOnly bool
}

// Reader cuts a byte stream into messages, however the bytes arrive. It is for
// one goroutine.
type Reader struct {
	src  *bufio.Reader
	opts ReaderOptions

	long   *longMessage // over the limit, its rest not consumed yet
	header []byte       // header line that was found behind stray bytes

	// framed is set by the first frame: from then on a line may hold what a
	// wrong Content-Length left over.
	framed bool
	// skipBody holds after a frame without a usable length: bytes up to the
	// next header are its body.
	skipBody bool
}

// longMessage is a message over the limit. held is what was read of it; left
// counts the unread bytes of a frame; ended says that nothing is unread.
type longMessage struct {
	mode       mcp.Mode
	held       []byte
	left       int64
	ended      bool
	terminated bool
}

// NewReader returns a Reader of src.
func NewReader(src io.Reader, opts ReaderOptions) *Reader {
	if opts.MaxMessage <= 0 {
		opts.MaxMessage = mcp.DefaultMaxMessage
	}
	return &Reader{src: bufio.NewReaderSize(&stickyReader{src: src}, readBuffer), opts: opts}
}

// Next returns the next message. A [*MessageError] concerns that message alone
// and Next may be called again; io.EOF is the end of the input; any other
// error is the input's own and final. A last line without a line feed is a
// message; when the input fails instead of ending, it is dropped.
func (r *Reader) Next() (mcp.Message, error) {
	if r.long != nil {
		if _, err := r.CopyLong(io.Discard); errors.Is(err, io.ErrUnexpectedEOF) {
			return mcp.Message{}, io.EOF // this frame has had its error
		} else if err != nil {
			return mcp.Message{}, err
		}
	}
	for {
		framed, err := r.atHeader()
		if err != nil {
			return mcp.Message{}, err
		}
		if framed {
			return r.nextFrame()
		}
		m, ok, err := r.nextLine()
		if ok || err != nil {
			return m, err
		}
	}
}

// CopyLong writes the whole message for which the last Next reported
// [ErrTooLong] to w, from its first byte and without its line feed, and reports
// whether it had one. The message streams: no more is held than was held when
// the limit was passed. Without CopyLong, Next skips the message. After a write
// error Next skips what was not written. A frame that the input cuts short
// gives io.ErrUnexpectedEOF.
func (r *Reader) CopyLong(w io.Writer) (terminated bool, err error) {
	m := r.long
	if m == nil {
		return false, errors.New("no message over the limit is pending")
	}
	held := m.held
	m.held = nil
	if _, err := w.Write(held); err != nil {
		return false, err
	}
	if m.mode == mcp.Framed {
		n, err := io.CopyN(w, r.src, m.left)
		m.left -= n
		if err == nil {
			r.long = nil
		} else if err == io.EOF {
			r.long, err = nil, io.ErrUnexpectedEOF
		}
		return true, err
	}
	for !m.ended {
		part, err := r.src.ReadSlice('\n')
		switch err {
		case nil:
			part, m.ended, m.terminated = part[:len(part)-1], true, true
		case io.EOF:
			m.ended = true
		case bufio.ErrBufferFull:
		default:
			return false, err
		}
		if _, err := w.Write(part); err != nil {
			return false, err
		}
	}
	r.long = nil
	return m.terminated, nil
}

// nextLine reads one line. It reports false for one that is no message.
func (r *Reader) nextLine() (mcp.Message, bool, error) {
	raw, terminated, err := r.readLine()
	if err != nil {
		r.skipBody = false
		return mcp.Message{}, false, err
	}
	if r.framed {
		if stray, header := cutHeader(raw); header != nil {
			r.header = header
			if r.skipBody || (mcp.Message{Raw: stray}).Blank() {
				return mcp.Message{}, false, nil
			}
			return mcp.Message{}, false, badFrame("%d bytes between the end of a frame and the next header", len(stray))
		}
	}
	m := mcp.Message{Raw: raw, Mode: mcp.Line, Terminated: terminated}
	if m.Blank() {
		return m, r.opts.KeepBlank, nil
	}
	// A body without a usable length shows itself by the header behind it, or
	// by the end of the input. One that ends like a line is taken as a line.
	body := r.skipBody && !terminated
	r.skipBody = false
	return m, !body, nil
}

// readLine reads up to the next line feed, which it consumes and does not
// return.
func (r *Reader) readLine() (line []byte, terminated bool, err error) {
	for {
		part, err := r.src.ReadSlice('\n')
		if err == nil {
			part, terminated = part[:len(part)-1], true
		}
		ended := err == nil || err == io.EOF
		if !ended && err != bufio.ErrBufferFull {
			return nil, false, err
		}
		line = append(line, part...)
		if len(line) > r.opts.MaxMessage {
			r.long = &longMessage{mode: mcp.Line, held: line, ended: ended, terminated: terminated}
			return nil, false, r.tooLong(mcp.Line, line)
		}
		if err == io.EOF && len(line) == 0 {
			return nil, false, io.EOF
		}
		if ended {
			return line, terminated, nil
		}
	}
}

func (r *Reader) tooLong(mode mcp.Mode, held []byte) *mcp.MessageError {
	prefix := bytes.Clone(held[:min(len(held), mcp.PrefixSize)])
	return &mcp.MessageError{
		Mode:   mode,
		Prefix: prefix,
		Seen:   mcp.ScanPrefix(prefix),
		Err:    fmt.Errorf("%w: over %d bytes", mcp.ErrTooLong, r.opts.MaxMessage),
	}
}

// stickyReader repeats the first error of src. A terminal gives data again
// after an end of file, and bufio forgets an error that it has reported.
type stickyReader struct {
	src io.Reader
	err error
}

func (s *stickyReader) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.src.Read(p)
	s.err = err
	return n, err
}
