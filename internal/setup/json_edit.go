package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// jsonFormat is a JSON file whose root has an object of servers.
//
// The layout tells what is ours, because removing has nothing else to go by: an
// object that we made has a line break behind its brace, while into an empty
// object that was there the entry goes directly behind the brace.
type jsonFormat struct {
	servers            string // the member of the root
	comments, trailing bool   // the client takes comments, commas before a closing brace
}

// splice replaces src[start:end] by text.
type splice struct {
	start, end int
	text       string
}

func apply(src []byte, edits ...splice) []byte {
	slices.SortStableFunc(edits, func(a, b splice) int { return a.start - b.start })
	out := make([]byte, 0, len(src)+512)
	pos := 0
	for _, e := range edits {
		out = append(append(out, src[pos:e.start]...), e.text...)
		pos = e.end
	}
	return append(out, src[pos:]...)
}

// parse returns the root and the index of the servers in it, or -1. The root is
// nil in a file without a value.
func (f jsonFormat) parse(src []byte) (root *node, at int, err error) {
	s := scanner{src: src, comments: f.comments, trailing: f.trailing}
	root, err = s.scan()
	if err != nil || root == nil {
		return nil, -1, err
	}
	if root.members == nil {
		return nil, -1, errNoObject
	}
	at = -1
	for i, m := range root.members {
		if m.key != f.servers {
			continue
		}
		if at >= 0 {
			return nil, -1, fmt.Errorf("line %d: a second %q: remove one by hand", lineAt(src, m.keyStart), f.servers)
		}
		if m.value.members == nil {
			return nil, -1, fmt.Errorf("line %d: %q is no object", lineAt(src, m.keyStart), f.servers)
		}
		at = i
	}
	return root, at, nil
}

func (f jsonFormat) entries(src []byte) ([]existing, error) {
	root, at, err := f.parse(src)
	if err != nil || at < 0 {
		return nil, err
	}
	var list []existing
	for _, m := range root.members[at].value.members {
		list = append(list, existing{name: m.key, value: m.value.decode(), line: lineAt(src, m.keyStart)})
	}
	return list, nil
}

func (f jsonFormat) decoded(e entry) (any, error) {
	var v any
	err := json.Unmarshal([]byte(e.json(layout{nl: "\n"}, "")), &v)
	return v, err
}

func (f jsonFormat) add(src []byte, newFile bool, name string, e entry) ([]byte, error) {
	root, at, err := f.parse(src)
	if err != nil {
		return nil, err
	}
	l := layoutOf(src, root)
	if root == nil {
		// Without a final line break, as the empty file has none: with one, it
		// is a file that was not there.
		text := "{" + l.nl + l.unit + f.object(l, l.unit, name, e) + l.nl + "}"
		if newFile {
			text += l.nl
		}
		return append(slices.Clip(src), text...), nil
	}
	if at < 0 {
		return apply(src, insert(src, root, l, func(indent string, _ bool) string { return f.object(l, indent, name, e) })...), nil
	}
	return apply(src, insert(src, root.members[at].value, l, func(indent string, oneLine bool) string {
		if oneLine {
			return quote(name) + l.colon + e.compact(l)
		}
		return quote(name) + ": " + e.json(l, indent)
	})...), nil
}

// object is the member with all servers, made for the one.
func (f jsonFormat) object(l layout, indent, name string, e entry) string {
	inner := indent + l.unit
	return quote(f.servers) + ": {" + l.nl + inner + quote(name) + ": " + e.json(l, inner) + l.nl + indent + "}"
}

// insert puts a member behind the last one of obj, in the layout of that one.
func insert(src []byte, obj *node, l layout, text func(indent string, oneLine bool) string) []splice {
	if len(obj.members) == 0 {
		at := obj.start + 1
		return []splice{{at, at, text(indentAt(src, obj.start), false)}}
	}
	last := obj.members[len(obj.members)-1]
	at, comma := last.value.end, ""
	var edits []splice
	if last.comma >= 0 {
		at, comma = last.comma+1, ","
	} else {
		edits = append(edits, splice{at, at, ","})
	}
	indent, own := ownLine(src, last.keyStart)
	if !own {
		return append(edits, splice{at, at, l.gap + text(indentAt(src, last.keyStart), true) + comma})
	}
	at = behindComments(src, at)
	return append(edits, splice{at, at, l.nl + indent + text(indent, false) + comma})
}

// behindComments is the end of the comments that stand on the line from pos on:
// they are about what is before them.
func behindComments(src []byte, pos int) int {
	for i := pos; i < len(src); {
		if src[i] == ' ' || src[i] == '\t' {
			i++
			continue
		}
		end := commentEnd(src, i)
		if end <= i {
			break
		}
		i, pos = end, end
	}
	return pos
}

func (f jsonFormat) remove(src []byte, name string) ([]byte, error) {
	root, at, err := f.parse(src)
	if err != nil {
		return nil, err
	}
	if at < 0 {
		return nil, errors.New("the entry is not there")
	}
	servers := root.members[at].value
	i := slices.IndexFunc(servers.members, func(m member) bool { return m.key == name })
	if i < 0 {
		return nil, errors.New("the entry is not there")
	}
	if !ours(src, servers) {
		return apply(src, cut(src, servers, i)...), nil
	}
	if !f.wholeFile(src, root, servers.members[i]) {
		return apply(src, cut(src, root, at)...), nil
	}
	if root.start == 0 && string(src[root.end:]) == newline(src) {
		return nil, nil // the file that was not there
	}
	return apply(src, splice{root.start, root.end, ""}), nil
}

// ours reports whether the object holds nothing but one member in the layout in
// which we make objects.
func ours(src []byte, obj *node) bool {
	if len(obj.members) != 1 || obj.members[0].comma >= 0 {
		return false
	}
	m := obj.members[0]
	before, after := src[obj.start+1:m.keyStart], src[m.value.end:obj.end-1]
	return bytes.HasPrefix(bytes.TrimPrefix(before, []byte("\r")), []byte("\n")) && len(bytes.TrimSpace(before))+len(bytes.TrimSpace(after)) == 0
}

// wholeFile reports whether the root is byte for byte what we would have made
// for the entry.
func (f jsonFormat) wholeFile(src []byte, root *node, m member) bool {
	e, ok := entryOf(m.value)
	if !ok {
		return false
	}
	l := layoutOf(src, root)
	return string(src[root.start:root.end]) == "{"+l.nl+l.unit+f.object(l, l.unit, m.key, e)+l.nl+"}"
}

// cut takes member i out of obj, with the white space in front of it and one
// comma. Comments stay.
func cut(src []byte, obj *node, i int) []splice {
	m := obj.members[i]
	start, end := blanksBefore(src, m.keyStart), m.value.end
	switch {
	case m.comma >= 0:
		if src[m.keyStart-1] == '{' { // on one line, the first of several
			next := m.comma + 1
			for next < len(src) && (src[next] == ' ' || src[next] == '\t') {
				next++
			}
			return []splice{{start, end, ""}, {m.comma, next, ""}}
		}
		return []splice{{start, end, ""}, {m.comma, m.comma + 1, ""}}
	case i > 0:
		comma := obj.members[i-1].comma
		return []splice{{comma, comma + 1, ""}, {max(start, comma+1), end, ""}}
	}
	return []splice{{start, end, ""}}
}

// blanksBefore is where the white space before pos begins: at the line break
// before it, or on its line.
func blanksBefore(src []byte, pos int) int {
	for pos > 0 && (src[pos-1] == ' ' || src[pos-1] == '\t') {
		pos--
	}
	if pos > 0 && src[pos-1] == '\n' {
		pos--
		if pos > 0 && src[pos-1] == '\r' {
			pos--
		}
	}
	return pos
}

// entryOf reads an entry that we could have written.
func entryOf(n *node) (entry, bool) {
	var e entry
	for _, m := range n.members {
		switch v := m.value.decode().(type) {
		case string:
			e.fields = append(e.fields, field{m.key, v})
		case float64:
			e.fields = append(e.fields, field{m.key, int(v)})
		case []any:
			var list []string
			for _, x := range v {
				s, ok := x.(string)
				if !ok {
					return e, false
				}
				list = append(list, s)
			}
			e.fields = append(e.fields, field{m.key, list})
		default:
			return e, false
		}
	}
	return e, n.members != nil
}

func quote(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}
