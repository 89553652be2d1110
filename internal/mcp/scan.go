package mcp

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// This is the one reader of JSON text that is not decoded. It checks no more
// syntax than it needs and never reads outside of what it was given. Everything
// else that looks into a raw message is built on eachMember.

// eachMember calls member for each member of the object at within text, in
// order. The name is a string with its quotes. A value that the text cuts short
// is passed as incomplete and ends the walk, as does anything that is not JSON.
// A value that is no object has no members.
func eachMember(text []byte, at Span, member func(name, value Span, complete bool)) {
	text = text[:at.End]
	i := skipSpace(text, at.Start)
	if i == len(text) || text[i] != '{' {
		return
	}
	for i++; ; i++ {
		name := Span{Start: skipSpace(text, i)}
		if name.Start == len(text) || text[name.Start] != '"' {
			return
		}
		var whole bool
		if name.End, whole = skipString(text, name.Start); !whole {
			return
		}
		i = skipSpace(text, name.End)
		if i == len(text) || text[i] != ':' {
			return
		}
		value := Span{Start: skipSpace(text, i+1)}
		value.End, whole = skipValue(text, value.Start)
		if value.End > value.Start {
			member(name, value, whole)
		}
		i = skipSpace(text, value.End)
		if !whole || i == len(text) || text[i] != ',' {
			return
		}
	}
}

// skipValue returns the end of the value that begins at i, and whether the
// value is complete. A number that the text ends with may have more digits.
func skipValue(text []byte, i int) (int, bool) {
	if i == len(text) {
		return i, false
	}
	switch text[i] {
	case '"':
		return skipString(text, i)
	case '{', '[':
		return skipNested(text, i)
	}
	for ; i < len(text); i++ {
		switch text[i] {
		case ',', '}', ']', ' ', '\t', '\r', '\n':
			return i, true
		}
	}
	return i, false
}

// skipNested returns the end of the object or array that begins at i.
func skipNested(text []byte, i int) (int, bool) {
	for depth := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1, true
			}
		case '"':
			end, ok := skipString(text, i)
			if !ok {
				return end, false
			}
			i = end - 1
		}
	}
	return i, false
}

// skipString returns the end of the string whose opening quote is at i.
func skipString(text []byte, i int) (int, bool) {
	start := i + 1
	for i = start; ; i++ {
		n := bytes.IndexByte(text[i:], '"')
		if n < 0 {
			return len(text), false
		}
		i += n
		back := i
		for back > start && text[back-1] == '\\' {
			back--
		}
		if (i-back)%2 == 0 {
			return i + 1, true
		}
	}
}

func skipSpace(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n') {
		i++
	}
	return i
}

// nesting returns the greatest depth of objects and arrays in text.
func nesting(text []byte) int {
	depth, deepest := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		case '"':
			end, _ := skipString(text, i)
			i = end - 1
		}
	}
	return deepest
}

// plain returns the content of a string that decodes to its own bytes.
func plain(raw []byte) ([]byte, bool) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return nil, false
	}
	content := raw[1 : len(raw)-1]
	return content, bytes.IndexByte(content, '\\') < 0 && utf8.Valid(content)
}

// Unquote decodes a string. Anything else stays as it is.
func Unquote(raw []byte) string {
	if content, ok := plain(raw); ok {
		return string(content)
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}

// is reports whether raw is a string of that value.
func is(raw []byte, value string) bool {
	if content, ok := plain(raw); ok {
		return string(content) == value
	}
	return Unquote(raw) == value
}
