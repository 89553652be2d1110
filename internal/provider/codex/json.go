package codex

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// span is a part of a text, by offsets.
type span struct{ start, end int }

func (s span) of(text []byte) []byte { return text[s.start:s.end] }

// member is one member of an object. Its offsets are those of the object's text.
type member struct {
	name  string
	all   span // from the name's quote to the value's end
	value span
}

// members returns the members of the object at within text, in order. It
// returns nil for anything else, and what precedes the fault of broken JSON.
func members(text []byte, at span) []member {
	i := skipSpace(text, at.start, at.end)
	if i == at.end || text[i] != '{' {
		return nil
	}
	var all []member
	for i++; ; i++ {
		start := skipSpace(text, i, at.end)
		nameEnd := skipString(text, start, at.end)
		colon := skipSpace(text, nameEnd, at.end)
		if nameEnd == start || colon == at.end || text[colon] != ':' {
			return all
		}
		value := span{start: skipSpace(text, colon+1, at.end)}
		value.end = skipValue(text, value.start, at.end)
		if value.end == value.start {
			return all
		}
		all = append(all, member{unquote(text[start:nameEnd]), span{start, value.end}, value})
		i = skipSpace(text, value.end, at.end)
		if i == at.end || text[i] != ',' {
			return all
		}
	}
}

// elements returns the elements of the array at within text, as members does.
func elements(text []byte, at span) []span {
	i := skipSpace(text, at.start, at.end)
	if i == at.end || text[i] != '[' {
		return nil
	}
	var all []span
	for i++; ; i++ {
		e := span{start: skipSpace(text, i, at.end)}
		e.end = skipValue(text, e.start, at.end)
		if e.end == e.start {
			return all
		}
		all = append(all, e)
		i = skipSpace(text, e.end, at.end)
		if i == at.end || text[i] != ',' {
			return all
		}
	}
}

// find returns the member with exactly the name. Of repeated ones the last
// counts, as for every JSON parser that could read the message after us.
func find(all []member, name string) (member, bool) {
	for _, m := range slices.Backward(all) {
		if m.name == name {
			return m, true
		}
	}
	return member{}, false
}

// lookup returns the value at a path of member names in text.
func lookup(text []byte, path ...string) (span, bool) {
	at := span{0, len(text)}
	for _, name := range path {
		m, ok := find(members(text, at), name)
		if !ok {
			return span{}, false
		}
		at = m.value
	}
	return at, true
}

// edit replaces a part of a text; an empty part is an insertion.
type edit struct {
	at   span
	with []byte
}

// splice applies edits, which must be in order and apart, to a copy of text.
func splice(text []byte, edits []edit) []byte {
	var out []byte
	last := 0
	for _, e := range edits {
		out = append(append(out, text[last:e.at.start]...), e.with...)
		last = e.at.end
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

// unquote decodes a string. Anything else stays as it is.
func unquote(raw []byte) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}

// stringValue decodes a value that is a string.
func stringValue(raw []byte) (string, bool) {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// encode writes a value of ours without the escapes that only HTML needs.
func encode(v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("codex: value cannot be encoded: " + err.Error()) // only our own types come here
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}
