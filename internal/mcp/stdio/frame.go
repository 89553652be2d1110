package stdio

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"

	"mcpagents/internal/mcp"
)

const (
	// maxHeader bounds one header block, its line ends included.
	maxHeader = 8192

	// maxFrame is the largest Content-Length that is believed. Skipping a body
	// by count is right for one that is merely too long; a claim above this is
	// a mistake, and believing it would swallow the rest of the session.
	maxFrame = 1 << 30
)

var (
	contentLength = []byte("content-length:")
	contentType   = []byte("content-type:")
)

// atHeader reports whether the next message is a frame. It waits for no byte
// that does not decide: a line that only begins like a header stays a line.
func (r *Reader) atHeader() (bool, error) {
	if r.header != nil {
		return true, nil
	}
	if r.opts.LinesOnly {
		return false, nil
	}
	for n := 1; ; n++ {
		head, err := r.src.Peek(n)
		if len(head) == 0 {
			return false, err
		}
		if len(head) < n {
			return false, nil
		}
		if bytes.EqualFold(head, contentLength) || bytes.EqualFold(head, contentType) {
			return true, nil
		}
		if !begins(contentLength, head) && !begins(contentType, head) {
			return false, nil
		}
	}
}

// begins reports whether field, in any case, begins with head.
func begins(field, head []byte) bool {
	return len(head) <= len(field) && bytes.EqualFold(field[:len(head)], head)
}

// nextFrame reads one header block and its body.
func (r *Reader) nextFrame() (mcp.Message, error) {
	r.framed, r.skipBody = true, false
	length, err := r.readHeader()
	if err != nil {
		return mcp.Message{}, err
	}
	size, long := length, length > int64(r.opts.MaxMessage)
	if long {
		size = min(length, mcp.PrefixSize)
	}
	held := make([]byte, size)
	n, err := io.ReadFull(r.src, held)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return mcp.Message{}, badFrame("the input ended after %d of %d bytes", n, length)
	} else if err != nil {
		return mcp.Message{}, err
	}
	if long {
		r.long = &longMessage{mode: mcp.Framed, held: held, left: length - int64(n)}
		return mcp.Message{}, r.tooLong(mcp.Framed, held)
	}
	return mcp.Message{Raw: held, Mode: mcp.Framed, Terminated: true}, nil
}

// readHeader reads a header block to its blank line and returns the body's
// length. A block is read to its end even when its first line is wrong, so
// that it costs one error and not one for each line.
func (r *Reader) readHeader() (int64, error) {
	length, size := int64(-1), 0
	var bad *mcp.MessageError
	for {
		line, n, err := r.headerLine()
		if err == errNoHeader {
			return 0, badFrame("a body follows the header without a blank line")
		} else if err == io.EOF {
			return 0, badFrame("the input ended inside a header")
		} else if err != nil {
			return 0, err
		}
		size += n
		if size > maxHeader {
			bad = badFrame("header over %d bytes", maxHeader)
		}
		if len(line) == 0 && n > 0 {
			break
		}
		if bad == nil {
			length, bad = headerField(line, length)
		}
	}
	if bad == nil && length < 0 {
		bad = badFrame("header without Content-Length")
	}
	if bad != nil {
		r.skipBody = true
		return 0, bad
	}
	return length, nil
}

// errNoHeader is told by headerLine when what follows opens a JSON message.
var errNoHeader = fmt.Errorf("%w: not a header line", mcp.ErrBadFrame)

// headerLine returns the next header line without its line end, valid until
// the next read, and the bytes that it took. A line over the bound is consumed
// and returned cut.
func (r *Reader) headerLine() (line []byte, n int, err error) {
	if r.header != nil {
		line, r.header = r.header, nil
		return bytes.TrimRight(line, "\r"), len(line) + 1, nil
	}
	if first, err := r.src.Peek(1); err != nil {
		return nil, 0, err
	} else if first[0] == '{' || first[0] == '[' {
		return nil, 0, errNoHeader
	}
	line, err = r.src.ReadSlice('\n')
	n = len(line)
	for err == bufio.ErrBufferFull {
		_, err = r.src.ReadSlice('\n')
		line = contentType // any text: the size has already decided
	}
	if err != nil {
		return nil, 0, err
	}
	return bytes.TrimRight(line, "\r\n"), n, nil
}

// headerField reads one "name: value" line into the length seen so far, which
// is -1 when there was none. Fields other than Content-Length are ignored.
func headerField(line []byte, length int64) (int64, *mcp.MessageError) {
	name, value, ok := bytes.Cut(line, []byte(":"))
	if !ok {
		return length, badFrame("header line without a colon")
	}
	if !bytes.EqualFold(bytes.TrimSpace(name), contentLength[:len(contentLength)-1]) {
		return length, nil
	}
	n, ok := parseLength(value)
	if !ok {
		return length, badFrame("Content-Length %.40q is not a number of bytes from 0 to %d", bytes.TrimSpace(value), maxFrame)
	}
	if length >= 0 && length != n {
		return length, badFrame("two Content-Length fields, %d and %d", length, n)
	}
	return n, nil
}

// parseLength accepts decimal digits only, without a sign.
func parseLength(value []byte) (int64, bool) {
	n, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 63)
	return int64(n), err == nil && n <= maxFrame
}

// cutHeader splits a line that ends with a whole Content-Length field into
// the stray bytes and the field. It is how reading finds the next frame after a
// Content-Length that was too small or too large: the rest of the old body and
// the next header then share a line. JSON never ends like this, so no message
// is mistaken for it.
func cutHeader(line []byte) (stray, header []byte) {
	const longest = 64 // field, blanks and digits
	for i := len(line) - len(contentLength); i >= max(0, len(line)-longest); i-- {
		value := i + len(contentLength)
		if !bytes.EqualFold(line[i:value], contentLength) {
			continue
		}
		if _, ok := parseLength(line[value:]); ok {
			return line[:i], line[i:]
		}
		break
	}
	return line, nil
}

func badFrame(format string, args ...any) *mcp.MessageError {
	return &mcp.MessageError{Mode: mcp.Framed, Err: fmt.Errorf("%w: %s", mcp.ErrBadFrame, fmt.Sprintf(format, args...))}
}
