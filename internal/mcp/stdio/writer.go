package stdio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"

	"mcpagents/internal/mcp"
)

// ErrOutputClosed says that nobody reads the output any more: a broken pipe or
// its kin. It is how a client that went away looks, and not a fault of ours.
var ErrOutputClosed = errors.New("output closed")

// copyBelow is the size up to which a message is copied behind its header, so
// that it leaves in one write.
const copyBelow = 64 << 10

// Writer puts whole messages on one output. Messages of different goroutines
// never mix. After a failed write every later one returns the same error: the
// output may have stopped inside a message, and a broken pipe is never retried.
type Writer struct {
	turn chan struct{} // one slot, held while writing; a channel, since tests with a fake clock cannot wait at a mutex

	out io.Writer
	buf []byte
	err error
}

// NewWriter returns a Writer to out.
func NewWriter(out io.Writer) *Writer { return &Writer{turn: make(chan struct{}, 1), out: out} }

// Send writes body as one message in the given framing. In line mode a line
// feed inside body becomes a space: JSON has them only between tokens, and a
// frame that is handed on as a line must stay one message.
func (w *Writer) Send(mode mcp.Mode, body []byte) error {
	if mode == mcp.Line && bytes.IndexByte(body, '\n') >= 0 {
		body = bytes.ReplaceAll(body, []byte{'\n'}, []byte{' '})
	}
	if mode == mcp.Framed {
		return w.write("Content-Length: "+strconv.Itoa(len(body))+"\r\n\r\n", body, "")
	}
	return w.write("", body, "\n")
}

// Forward writes m as it came: a line byte for byte, with a line feed only if
// it had one.
func (w *Writer) Forward(m mcp.Message) error {
	if m.Mode == mcp.Line && !m.Terminated {
		return w.write("", m.Raw, "")
	}
	return w.Send(m.Mode, m.Raw)
}

// Stream gives write the output for as long as it runs, for a message that is
// not held whole. It must write whole messages, framing included; an error that
// it returns ends the Writer as a failed write does.
func (w *Writer) Stream(write func(out io.Writer) error) error {
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	if w.err == nil {
		w.err = outputError(write(w.out))
	}
	return w.err
}

func (w *Writer) write(head string, body []byte, tail string) error {
	return w.Stream(func(out io.Writer) error {
		if len(body) <= copyBelow {
			w.buf = append(append(append(w.buf[:0], head...), body...), tail...)
			_, err := out.Write(w.buf)
			return err
		}
		for _, part := range [][]byte{[]byte(head), body, []byte(tail)} {
			if len(part) == 0 {
				continue
			}
			if _, err := out.Write(part); err != nil {
				return err
			}
		}
		return nil
	})
}

// outputError marks the errors by which a system says that the reader is gone.
func outputError(err error) error {
	if err == nil || errors.Is(err, ErrOutputClosed) {
		return err
	}
	kin := append([]error{io.ErrClosedPipe, os.ErrClosed, net.ErrClosed}, brokenPipe...)
	if slices.ContainsFunc(kin, func(k error) bool { return errors.Is(err, k) }) {
		return fmt.Errorf("%w: %w", ErrOutputClosed, err)
	}
	return err
}
