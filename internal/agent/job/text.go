package job

import (
	"strings"
	"unicode/utf8"
)

// paged is a text that is read in pages. Offsets count code points.
type paged struct {
	text string
	end  int // length in code points
	// A place that is known, so that reading page after page does not begin
	// at the text's start each time.
	knownOffset, knownByte int
}

func newPaged(text string) paged { return paged{text: text, end: utf8.RuneCountInString(text)} }

// page returns at most size code points from offset, which must not be behind
// the end, and the offset of what follows.
func (p *paged) page(offset, size int) (text string, next int) {
	if offset < p.knownOffset {
		p.knownOffset, p.knownByte = 0, 0
	}
	start := p.knownByte + skip(p.text[p.knownByte:], offset-p.knownOffset)
	next = min(offset+size, p.end)
	stop := start + skip(p.text[start:], next-offset)
	p.knownOffset, p.knownByte = next, stop
	return p.text[start:stop], next
}

// skip returns the length in bytes of the first n code points of s.
func skip(s string, n int) int {
	if n <= 0 {
		return 0
	}
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// tail is the end of a text that grows. Its offsets are absolute: they count
// the code points of all that was ever written.
type tail struct {
	text       []byte
	start, end int
	limit      int // in bytes
}

// write appends s without what could disturb a terminal or hide text, and
// reports whether the beginning was dropped for the first time.
func (t *tail) write(s string) (dropped bool) {
	s = strings.Map(printable, s)
	t.text = append(t.text, s...)
	t.end += utf8.RuneCountInString(s)
	excess := len(t.text) - t.limit
	if excess <= 0 {
		return false
	}
	for excess < len(t.text) && !utf8.RuneStart(t.text[excess]) {
		excess++
	}
	dropped = t.start == 0
	t.start += utf8.RuneCount(t.text[:excess])
	t.text = append(t.text[:0], t.text[excess:]...)
	return dropped
}

// printable drops control characters but for tab and line feed, the line and
// paragraph separators, and what changes the direction of text.
func printable(r rune) rune {
	switch {
	case r == '\t' || r == '\n':
		return r
	case r < 0x20, r >= 0x7f && r <= 0x9f, r == 0x2028, r == 0x2029, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return -1
	}
	return r
}

// page returns at most size code points from offset, which must lie between
// start and end.
func (t *tail) page(offset, size int) (text string, next int) {
	p := paged{text: string(t.text), end: t.end - t.start}
	text, next = p.page(offset-t.start, size)
	return text, next + t.start
}

// Message makes a status message of a text that may hold anything: on one
// line, without control characters, at most size code points.
func Message(s string, size int) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r <= 0x9f {
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	return s[:skip(s, size)]
}
