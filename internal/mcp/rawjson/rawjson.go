// Package rawjson reads and changes parts of a JSON text without touching the
// rest of its bytes, so that a message of somebody else can be passed on with one
// member added and everything else as its sender wrote it.
//
// It checks no more than it needs. Whoever cares whether a text is JSON at all
// has it parsed first.
package rawjson

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Span is a part of a text, by offsets.
type Span struct{ Start, End int }

// Of returns the part.
func (s Span) Of(text []byte) []byte { return text[s.Start:s.End] }

// Member is one member of an object. Its offsets are those of the object's text.
type Member struct {
	Name  string
	All   Span // from the name's quote to the value's end
	Value Span
}

// Members returns the members of the object at within text, in order. It
// returns nil for anything else, and what precedes the fault of broken JSON.
func Members(text []byte, at Span) []Member {
	i := skipSpace(text, at.Start, at.End)
	if i == at.End || text[i] != '{' {
		return nil
	}
	var all []Member
	for i++; ; i++ {
		start := skipSpace(text, i, at.End)
		nameEnd := skipString(text, start, at.End)
		colon := skipSpace(text, nameEnd, at.End)
		if nameEnd == start || colon == at.End || text[colon] != ':' {
			return all
		}
		value := Span{Start: skipSpace(text, colon+1, at.End)}
		value.End = skipValue(text, value.Start, at.End)
		if value.End == value.Start {
			return all
		}
		all = append(all, Member{Unquote(text[start:nameEnd]), Span{start, value.End}, value})
		i = skipSpace(text, value.End, at.End)
		if i == at.End || text[i] != ',' {
			return all
		}
	}
}

// Elements returns the elements of the array at within text, as Members does.
func Elements(text []byte, at Span) []Span {
	i := skipSpace(text, at.Start, at.End)
	if i == at.End || text[i] != '[' {
		return nil
	}
	var all []Span
	for i++; ; i++ {
		e := Span{Start: skipSpace(text, i, at.End)}
		e.End = skipValue(text, e.Start, at.End)
		if e.End == e.Start {
			return all
		}
		all = append(all, e)
		i = skipSpace(text, e.End, at.End)
		if i == at.End || text[i] != ',' {
			return all
		}
	}
}

// Find returns the member with exactly the name. Of repeated ones the last
// counts, as for every JSON parser that could read the message after us.
func Find(all []Member, name string) (Member, bool) {
	for _, m := range slices.Backward(all) {
		if m.Name == name {
			return m, true
		}
	}
	return Member{}, false
}

// Lookup returns the value at a path of member names in text.
func Lookup(text []byte, path ...string) (Span, bool) {
	at := Span{0, len(text)}
	for _, name := range path {
		m, ok := Find(Members(text, at), name)
		if !ok {
			return Span{}, false
		}
		at = m.Value
	}
	return at, true
}

// Edit replaces a part of a text; an empty part is an insertion.
type Edit struct {
	At   Span
	With []byte
}

// Splice applies edits, which must be in order and apart, to a copy of text.
func Splice(text []byte, edits ...Edit) []byte {
	var out []byte
	last := 0
	for _, e := range edits {
		out = append(append(out, text[last:e.At.Start]...), e.With...)
		last = e.At.End
	}
	return append(out, text[last:]...)
}

func skipSpace(text []byte, i, end int) int {
	for i < end && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n') {
		i++
	}
	return i
}

// skipString returns the end of the string at i, or i if there is none.
func skipString(text []byte, i, end int) int {
	if i >= end || text[i] != '"' {
		return i
	}
	for j := i + 1; j < end; j++ {
		switch text[j] {
		case '\\':
			j++
		case '"':
			return j + 1
		}
	}
	return i
}

// skipValue returns the end of the value at i, or i if there is none.
func skipValue(text []byte, i, end int) int {
	if i >= end {
		return i
	}
	switch text[i] {
	case '"':
		return skipString(text, i, end)
	case '{', '[':
		return skipNested(text, i, end)
	}
	j := i
	for j < end && !strings.ContainsRune(",]} \t\r\n", rune(text[j])) {
		j++
	}
	return j
}

func skipNested(text []byte, i, end int) int {
	depth := 0
	for j := i; j < end; j++ {
		switch text[j] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return j + 1
			}
		case '"':
			next := skipString(text, j, end)
			if next == j {
				return i
			}
			j = next - 1
		}
	}
	return i
}

// Unquote decodes a string. Anything else stays as it is.
func Unquote(raw []byte) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}

// Text decodes a value that is a string.
func Text(raw []byte) (string, bool) {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// Encode writes a value without the escapes that only HTML needs. It is for types
// that can always be encoded, and panics on others.
func Encode(v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("rawjson: value cannot be encoded: " + err.Error()) // callers give their own types
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}
