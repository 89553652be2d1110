package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxDepth is the deepest nesting of a message that is parsed. It is the bound
// of encoding/json, which anything decoded later meets anyway. Messages that
// are only forwarded have no bound.
const MaxDepth = 10_000

// IDKind is the JSON type of an id.
type IDKind uint8

const (
	AbsentID IDKind = iota // no such member
	NullID
	StringID
	NumberID
	OtherID // a type that JSON-RPC does not allow; answered as null
)

// ID is the id of a request as its sender wrote it. The zero value is an
// absent id.
type ID struct {
	Kind IDKind
	Raw  []byte // exact bytes, a copy; nil if absent
}

// ParseID reads one JSON value as an id. It is also for ids that sit elsewhere,
// such as the requestId of a cancel notification.
func ParseID(raw []byte) ID {
	raw = bytes.Trim(raw, " \t\r\n")
	if len(raw) == 0 {
		return ID{}
	}
	id := ID{Kind: OtherID, Raw: bytes.Clone(raw)}
	if !json.Valid(raw) {
		return id
	}
	switch c := raw[0]; {
	case c == '"':
		id.Kind = StringID
	case c == 'n':
		id.Kind = NullID
	case c == '-' || c >= '0' && c <= '9':
		id.Kind = NumberID
	}
	return id
}

// Usable reports whether the id can name a request: it is a string or a number.
func (id ID) Usable() bool { return id.Kind == StringID || id.Kind == NumberID }

// Key returns a comparable form with its type, such as "number:3" or
// "string:abc", and "" for an id that is not usable. Strings compare by their
// decoded value, numbers as written: 1, 1.0 and "1" are three ids.
func (id ID) Key() string {
	switch id.Kind {
	case NumberID:
		return "number:" + string(id.Raw)
	case StringID:
		s := Unquote(id.Raw)
		if strings.ContainsRune(s, utf8.RuneError) {
			// Decoding maps every invalid sequence to one character; two ids
			// that differ only there must stay different.
			return "rawstring:" + string(id.Raw)
		}
		return "string:" + s
	}
	return ""
}

// MarshalJSON returns the bytes as written; null for an absent or other id.
func (id ID) MarshalJSON() ([]byte, error) { return id.wire(), nil }

// wire returns what an answer carries as id.
func (id ID) wire() []byte {
	if id.Usable() {
		return id.Raw
	}
	return []byte("null")
}

// Envelope is the top level of one JSON-RPC message. Member names match exactly:
// "ID" is not "id". Of a repeated member the last one wins, as in JavaScript
// and Go, so that no peer reads another call than we do. The raw members share
// memory with the message and are nil if absent. An array, a scalar or null
// gives the zero Envelope.
type Envelope struct {
	ID        ID
	Method    string
	HasMethod bool // the member is there and is a string
	Params    json.RawMessage
	Result    json.RawMessage
	Error     json.RawMessage
}

// ParseEnvelope checks that data is one JSON text and returns its top level.
// Errors wrap [ErrSyntax] or [ErrTooDeep]; with the latter the Envelope holds
// what could be seen of the top level, so that the sender can be answered.
func ParseEnvelope(data []byte) (Envelope, error) {
	var e Envelope
	if !json.Valid(data) {
		if nesting(data) > MaxDepth {
			e.scan(data)
			return e, fmt.Errorf("%w: over %d levels", ErrTooDeep, MaxDepth)
		}
		var value json.RawMessage
		return e, fmt.Errorf("%w: %w", ErrSyntax, json.Unmarshal(data, &value))
	}
	e.scan(data)
	return e, nil
}

// ScanPrefix looks at the first [PrefixSize] bytes of a message that is not
// parsed whole. It returns what it saw of the envelope: an ID only if it is
// complete, Params, Result and Error with what was there of them, so that
// [Envelope.IsResponse] can tell an answer from a request of the same id. It
// sees the members of the top level only, never an "id" inside of params or of
// a string. It checks no more syntax than it needs; of a repeated member the
// last one seen wins.
func ScanPrefix(data []byte) Envelope { return Scan(data[:min(len(data), PrefixSize)]) }

// Scan looks at a whole message as ScanPrefix looks at its beginning, some ten
// times as fast as [ParseEnvelope], which checks every byte. It is for messages
// that are passed on as they are; its answer for text that is not JSON means
// nothing.
func Scan(data []byte) Envelope {
	var e Envelope
	e.scan(data)
	return e
}

func (e *Envelope) scan(data []byte) {
	eachMember(data, Span{0, len(data)}, func(name, at Span, complete bool) {
		e.set(name.Of(data), at.Of(data), complete)
	})
}

// set takes one member of the top level.
func (e *Envelope) set(name, value []byte, complete bool) {
	key, ok := plain(name)
	if !ok {
		key = []byte(Unquote(name))
	}
	switch string(key) {
	case "id":
		e.ID = ID{}
		if complete {
			e.ID = ParseID(value)
		}
	case "method":
		e.HasMethod, e.Method = value[0] == '"', ""
		if e.HasMethod && complete {
			e.Method = Unquote(value)
		}
	case "params":
		e.Params = value
	case "result":
		e.Result = value
	case "error":
		e.Error = value
	}
}

// IsNotification reports a message that must not be answered.
func (e Envelope) IsNotification() bool { return e.HasMethod && e.ID.Kind == AbsentID }

// IsResponse reports an answer to a request of ours.
func (e Envelope) IsResponse() bool {
	return !e.HasMethod && e.ID.Kind != AbsentID && (e.Result != nil || e.Error != nil)
}

// Check returns nil for a request, a notification or a response, and otherwise
// the error that a strict server answers without executing anything: for an
// array or scalar, a missing method, and an id that is null or of another type
// (MCP forbids a null id, and running such a call would leave its sender
// waiting).
func (e Envelope) Check() *Error {
	switch {
	case e.IsResponse() || e.IsNotification():
		return nil
	case !e.HasMethod:
		return &Error{Code: CodeInvalidRequest, Message: "Invalid Request: not an object with a method"}
	case !e.ID.Usable():
		return &Error{Code: CodeInvalidRequest, Message: "Invalid Request: id must be a string or a number"}
	}
	return nil
}
