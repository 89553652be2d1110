package mcp

import "errors"

// Sizes in bytes.
const (
	// DefaultMaxMessage is the longest message read whole unless configured.
	DefaultMaxMessage = 16 << 20

	// PrefixSize is how much of a message over the limit is looked at. Answers
	// of servers have their id there. Requests of clients built on the
	// TypeScript or Python SDK have it last and are then refused with id null.
	PrefixSize = 8192
)

// Mode is the framing of one message.
type Mode uint8

const (
	Line   Mode = iota // text up to a line feed
	Framed             // Content-Length header, blank line, body
)

// String returns "line" or "framed".
func (m Mode) String() string {
	if m == Framed {
		return "framed"
	}
	return "line"
}

// Message is one message as it came.
type Message struct {
	// Raw holds the exact bytes: of a line everything before its line feed, a
	// carriage return included; of a frame the body. The slice belongs to the
	// receiver.
	Raw []byte

	// Mode is the framing it came in.
	Mode Mode

	// Terminated is false only for a last line that the input ended without
	// its line feed.
	Terminated bool
}

// Body returns the message without the carriage return that ends a line in
// CRLF style. It shares memory with Raw.
func (m Message) Body() []byte {
	if n := len(m.Raw); m.Mode == Line && n > 0 && m.Raw[n-1] == '\r' {
		return m.Raw[:n-1]
	}
	return m.Raw
}

// Blank reports whether the message is a line of nothing but JSON white space.
// An empty frame is not blank: its sender meant a message.
func (m Message) Blank() bool {
	return m.Mode == Line && isBlank(m.Raw)
}

func isBlank(b []byte) bool { return skipSpace(b, 0) == len(b) }

// Reasons of a [MessageError].
var (
	ErrTooLong  = errors.New("message too long")
	ErrBadFrame = errors.New("bad frame")
	ErrTooDeep  = errors.New("message nested too deeply")
	ErrSyntax   = errors.New("invalid JSON")
)

// MessageError says that one message could not be used and that the messages
// after it still can.
type MessageError struct {
	// Mode is the framing that the message came in.
	Mode Mode

	// Prefix holds up to [PrefixSize] leading bytes of a message over the
	// limit, nil for other reasons.
	Prefix []byte

	// Seen is what could be seen of the top level: within Prefix for a message
	// over the limit, everywhere for one that is nested too deeply.
	Seen Envelope

	// Err is the reason; it wraps [ErrTooLong], [ErrBadFrame], [ErrTooDeep] or
	// [ErrSyntax]. Its text holds no content of the message beyond a header
	// value.
	Err error
}

func (e *MessageError) Error() string { return e.Err.Error() }
func (e *MessageError) Unwrap() error { return e.Err }
