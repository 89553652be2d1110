package stdio

import (
	"bytes"
	"encoding/json"
)

// ScanPrefix looks at the first [PrefixSize] bytes of a message that is not
// parsed whole. It returns what it saw of the envelope: an ID only if it is
// complete, Params, Result and Error with what was there of them, so that
// [Envelope.IsResponse] can tell an answer from a request of the same id. It
// sees the members of the top level only, never an "id" inside of params or of
// a string. It checks no more syntax than it needs; of a repeated member the
// last one seen wins.
func ScanPrefix(data []byte) Envelope {
	var e Envelope
	walk(data[:min(len(data), PrefixSize)], e.set)
	return e
}

// Scan looks at a whole message as ScanPrefix looks at its beginning, some ten
// times as fast as [ParseEnvelope], which checks every byte. It is for messages
// that are passed on as they are; what it says of text that is not JSON means
// nothing.
func Scan(data []byte) Envelope {
	var e Envelope
	walk(data, e.set)
	return e
}

// walk calls member for each member of the object in data, in order. A value
// that data cuts short is passed as incomplete and ends the walk, as does
// anything that is not JSON. Data that is no object has no members.
func walk(data []byte, member func(key string, value []byte, complete bool)) (object bool) {
	i := skipSpace(data, 0)
	if i == len(data) || data[i] != '{' {
		return false
	}
	i++
	for {
		i = skipSpace(data, i)
		if i == len(data) || data[i] != '"' {
			return true
		}
		end, ok := skipString(data, i)
		if !ok {
			return true
		}
		key := unquote(data[i:end])
		i = skipSpace(data, end)
		if i == len(data) || data[i] != ':' {
			return true
		}
		i = skipSpace(data, i+1)
		end, ok = skipValue(data, i)
		if end > i {
			member(key, data[i:end], ok)
		}
		i = skipSpace(data, end)
		if !ok || i == len(data) || data[i] != ',' {
			return true
		}
		i++
	}
}

// skipValue returns the end of the value that begins at i, and whether the
// value is complete. A number that data ends with may have more digits.
func skipValue(data []byte, i int) (int, bool) {
	if i == len(data) {
		return i, false
	}
	switch data[i] {
	case '"':
		return skipString(data, i)
	case '{', '[':
		return skipNested(data, i)
	}
	for ; i < len(data); i++ {
		switch data[i] {
		case ',', '}', ']', ' ', '\t', '\r', '\n':
			return i, true
		}
	}
	return i, false
}

// skipNested returns the end of the object or array that begins at i.
func skipNested(data []byte, i int) (int, bool) {
	for depth := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1, true
			}
		case '"':
			end, ok := skipString(data, i)
			if !ok {
				return end, false
			}
			i = end - 1
		}
	}
	return i, false
}

// skipString returns the end of the string whose opening quote is at i.
func skipString(data []byte, i int) (int, bool) {
	start := i + 1
	for i = start; ; i++ {
		n := bytes.IndexByte(data[i:], '"')
		if n < 0 {
			return len(data), false
		}
		i += n
		back := i
		for back > start && data[back-1] == '\\' {
			back--
		}
		if (i-back)%2 == 0 {
			return i + 1, true
		}
	}
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\t' || data[i] == '\r' || data[i] == '\n') {
		i++
	}
	return i
}

// unquote decodes a string; text that is no valid string stays as it is.
func unquote(raw []byte) string {
	var s string
	if bytes.IndexByte(raw, '\\') < 0 && len(raw) >= 2 {
		return string(raw[1 : len(raw)-1])
	}
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}

// nesting returns the greatest depth of objects and arrays in data.
func nesting(data []byte) int {
	depth, deepest := 0, 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		case '"':
			end, _ := skipString(data, i)
			i = end - 1
		}
	}
	return deepest
}
