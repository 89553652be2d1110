package mcp

import (
	"bytes"
	"encoding/json"
	"slices"
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
	var all []Member
	eachMember(text, at, func(name, value Span, complete bool) {
		if complete {
			all = append(all, Member{Unquote(name.Of(text)), Span{name.Start, value.End}, value})
		}
	})
	return all
}

// Elements returns the elements of the array at within text, as Members does.
func Elements(text []byte, at Span) []Span {
	text = text[:at.End]
	i := skipSpace(text, at.Start)
	if i == len(text) || text[i] != '[' {
		return nil
	}
	var all []Span
	for i++; ; i++ {
		e := Span{Start: skipSpace(text, i)}
		end, complete := skipValue(text, e.Start)
		if !complete || end == e.Start {
			return all
		}
		e.End = end
		all = append(all, e)
		i = skipSpace(text, e.End)
		if i == len(text) || text[i] != ',' {
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

// Lookup returns the value at a path of member names in text. Of repeated
// members the last counts, as in [Find].
func Lookup(text []byte, path ...string) (Span, bool) {
	at := Span{0, len(text)}
	for _, want := range path {
		found := false
		var next Span
		eachMember(text, at, func(name, value Span, complete bool) {
			if complete && is(name.Of(text), want) {
				next, found = value, true
			}
		})
		if !found {
			return Span{}, false
		}
		at = next
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

// Text decodes a value that is a string.
func Text(raw []byte) (string, bool) {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// Marshal is json.Marshal that leaves <, > and & as they are: tool output is
// full of them, and no browser reads it.
func Marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte{'\n'}), nil
}

// Encode is [Marshal] for values that can always be encoded. It panics on others.
func Encode(v any) []byte {
	b, err := Marshal(v)
	if err != nil {
		panic("mcp: value cannot be encoded: " + err.Error()) // callers give their own types
	}
	return b
}
