package setup

import (
	"bytes"
	"strconv"
	"strings"
)

// wide is the number of items up to which an array stays on one line.
const wide = 4

// layout is how a file is written.
type layout struct {
	nl    string // line break
	unit  string // one step of indentation
	colon string // between a name and its value, on one line
	gap   string // behind a comma, on one line
}

// newline is the file's first line break, or a line feed.
func newline(src []byte) string {
	if i := bytes.IndexByte(src, '\n'); i > 0 && src[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// layoutOf looks at the root's first member, else at the first indented line.
func layoutOf(src []byte, root *node) layout {
	l := layout{nl: newline(src), unit: "  ", colon: ": ", gap: " "}
	if root == nil {
		return l
	}
	if len(root.members) > 0 {
		m := root.members[0]
		if indent, own := ownLine(src, m.keyStart); own && indent != "" {
			l.unit = indent
			return l
		}
		if src[m.value.start-1] == ':' {
			l.colon, l.gap = ":", ""
		}
	}
	for line := range bytes.Lines(src) {
		rest := bytes.TrimLeft(line, " \t")
		if indent := line[:len(line)-len(rest)]; len(indent) > 0 && len(bytes.TrimSpace(rest)) > 0 {
			l.unit = string(indent)
			break
		}
	}
	return l
}

// indentAt is the indentation of the line that holds pos.
func indentAt(src []byte, pos int) string {
	line := src[bytes.LastIndexByte(src[:pos], '\n')+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// ownLine returns the indentation of pos if nothing else is before it on its
// line.
func ownLine(src []byte, pos int) (string, bool) {
	begin := bytes.LastIndexByte(src[:pos], '\n') + 1
	before := src[begin:pos]
	return string(before), begin > 0 && len(bytes.Trim(before, " \t")) == 0
}

// json is the entry over several lines; its first line is not indented.
func (e entry) json(l layout, indent string) string {
	inner := indent + l.unit
	var b strings.Builder
	b.WriteString("{")
	for i, f := range e.fields {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(l.nl + inner + quote(f.name) + ": ")
		if list, ok := f.value.([]string); ok && len(list) > wide {
			items := quoteAll(list)
			b.WriteString("[" + l.nl + inner + l.unit + strings.Join(items, ","+l.nl+inner+l.unit) + l.nl + inner + "]")
		} else {
			b.WriteString(literal(f.value, ", "))
		}
	}
	return b.String() + l.nl + indent + "}"
}

// compact is the entry on one line.
func (e entry) compact(l layout) string {
	parts := make([]string, len(e.fields))
	for i, f := range e.fields {
		parts[i] = quote(f.name) + l.colon + literal(f.value, ","+l.gap)
	}
	return "{" + strings.Join(parts, ","+l.gap) + "}"
}

// literal is a value in the syntax that JSON and TOML share.
func literal(value any, comma string) string {
	switch v := value.(type) {
	case string:
		return quote(v)
	case []string:
		return "[" + strings.Join(quoteAll(v), comma) + "]"
	case int:
		return strconv.Itoa(v)
	}
	panic("setup: a field of an unknown type")
}

func quoteAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = quote(s)
	}
	return out
}
