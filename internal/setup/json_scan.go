package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// maxDepth bounds the nesting of a JSON file.
const maxDepth = 1000

// node is a JSON value and where it stands: src[start:end].
type node struct {
	start, end int
	members    []member // of an object
	items      []*node  // of an array
	scalar     any      // of anything else, decoded
}

// member is a member of an object. comma is the offset of the comma behind it,
// or -1.
type member struct {
	key      string
	keyStart int
	value    *node
	comma    int
}

// scanner finds the positions of the values of a JSON text. It is as strict as
// RFC 8259, but for the comments and trailing commas that are allowed to it.
type scanner struct {
	src                []byte
	comments, trailing bool
	pos                int
	depth              int
}

// scan returns the root value, or nil if there is none: the text is white space
// (and comments) then. A byte order mark at the begin is skipped.
func (s *scanner) scan() (*node, error) {
	if bytes.HasPrefix(s.src, []byte("\ufeff")) {
		s.pos = len("\ufeff")
	}
	if err := s.skip(); err != nil {
		return nil, err
	}
	if s.pos == len(s.src) {
		return nil, nil
	}
	root, err := s.value()
	if err != nil {
		return nil, err
	}
	if err := s.skip(); err != nil {
		return nil, err
	}
	if s.pos < len(s.src) {
		return nil, s.fail("something follows the JSON value")
	}
	return root, nil
}

func (s *scanner) fail(text string) error {
	return fmt.Errorf("line %d: %s", lineAt(s.src, s.pos), text)
}

func lineAt(src []byte, pos int) int { return 1 + bytes.Count(src[:pos], []byte("\n")) }

// peek is the next byte, or 0 at the end.
func (s *scanner) peek() byte {
	if s.pos < len(s.src) {
		return s.src[s.pos]
	}
	return 0
}

// skip goes over white space and comments.
func (s *scanner) skip() error {
	for s.pos < len(s.src) {
		switch s.src[s.pos] {
		case ' ', '\t', '\r', '\n':
			s.pos++
		case '/':
			end := commentEnd(s.src, s.pos)
			if end < 0 {
				return s.fail("a comment is not closed")
			}
			if end == s.pos {
				return s.fail("unexpected character '/'")
			}
			if !s.comments {
				return s.fail("comments are not allowed in this file")
			}
			s.pos = end
		default:
			return nil
		}
	}
	return nil
}

// commentEnd is the end of the comment at pos: pos if there is none, -1 if it is
// not closed. A line comment ends before its line break.
func commentEnd(src []byte, pos int) int {
	rest := src[pos:]
	switch {
	case bytes.HasPrefix(rest, []byte("//")):
		if n := bytes.IndexAny(rest, "\r\n"); n >= 0 {
			return pos + n
		}
		return len(src)
	case bytes.HasPrefix(rest, []byte("/*")):
		if n := bytes.Index(rest[2:], []byte("*/")); n >= 0 {
			return pos + n + 4
		}
		return -1
	}
	return pos
}

func (s *scanner) value() (*node, error) {
	if s.depth++; s.depth > maxDepth {
		return nil, s.fail("the nesting is too deep")
	}
	defer func() { s.depth-- }()
	switch s.peek() {
	case '{':
		return s.object()
	case '[':
		return s.array()
	case '"':
		n := &node{start: s.pos}
		text, err := s.str()
		n.end, n.scalar = s.pos, text
		return n, err
	}
	n := &node{start: s.pos}
	for s.pos < len(s.src) && bytes.IndexByte([]byte(" \t\r\n,:]}[{\"/"), s.src[s.pos]) < 0 {
		s.pos++
	}
	n.end = s.pos
	if n.start == n.end || json.Unmarshal(s.src[n.start:n.end], &n.scalar) != nil {
		s.pos = n.start
		return nil, s.fail("a value is expected here")
	}
	return n, nil
}

// str reads a string and returns it decoded.
func (s *scanner) str() (string, error) {
	start := s.pos
	for i := start + 1; i < len(s.src); i++ {
		switch s.src[i] {
		case '\\':
			i++
		case '"':
			var text string
			if err := json.Unmarshal(s.src[start:i+1], &text); err != nil {
				return "", s.fail("a string is not valid")
			}
			s.pos = i + 1
			return text, nil
		}
	}
	return "", s.fail("a string is not closed")
}

func (s *scanner) array() (*node, error) {
	n := &node{start: s.pos}
	s.pos++
	for comma := true; ; {
		if err := s.skip(); err != nil {
			return nil, err
		}
		if s.peek() == ']' {
			if comma && len(n.items) > 0 && !s.trailing {
				return nil, s.fail("a comma before ] is not allowed in this file")
			}
			s.pos++
			n.end = s.pos
			return n, nil
		}
		if !comma {
			return nil, s.fail("a comma or ] is expected here")
		}
		item, err := s.value()
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, item)
		if comma, err = s.comma(); err != nil {
			return nil, err
		}
	}
}

// comma goes over white space and one comma and reports whether there was one.
func (s *scanner) comma() (bool, error) {
	if err := s.skip(); err != nil {
		return false, err
	}
	if s.peek() != ',' {
		return false, nil
	}
	s.pos++
	return true, nil
}

func (s *scanner) object() (*node, error) {
	n := &node{start: s.pos, members: []member{}}
	s.pos++
	for comma := true; ; {
		if err := s.skip(); err != nil {
			return nil, err
		}
		if s.peek() == '}' {
			if comma && len(n.members) > 0 && !s.trailing {
				return nil, s.fail("a comma before } is not allowed in this file")
			}
			s.pos++
			n.end = s.pos
			return n, nil
		}
		if !comma {
			return nil, s.fail("a comma or } is expected here")
		}
		m, err := s.member()
		if err != nil {
			return nil, err
		}
		if comma, err = s.comma(); err != nil {
			return nil, err
		}
		if comma {
			m.comma = s.pos - 1
		}
		n.members = append(n.members, m)
	}
}

func (s *scanner) member() (m member, err error) {
	m = member{keyStart: s.pos, comma: -1}
	if s.peek() != '"' {
		return m, s.fail("a name in double quotes is expected here")
	}
	if m.key, err = s.str(); err != nil {
		return m, err
	}
	if err = s.skip(); err != nil {
		return m, err
	}
	if s.peek() != ':' {
		return m, s.fail("a colon is expected here")
	}
	s.pos++
	if err = s.skip(); err != nil {
		return m, err
	}
	m.value, err = s.value()
	return m, err
}

var errNoObject = errors.New("its top level is no JSON object")

// decode turns a node into what encoding/json would make of it.
func (n *node) decode() any {
	switch {
	case n.members != nil:
		m := make(map[string]any, len(n.members))
		for _, x := range n.members {
			m[x.key] = x.value.decode()
		}
		return m
	case n.items != nil:
		list := make([]any, len(n.items))
		for i, x := range n.items {
			list[i] = x.decode()
		}
		return list
	}
	return n.scalar
}
