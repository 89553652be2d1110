package plain

import (
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":                            "",
		"codex 0.153.4, größer; 模型 é": "codex 0.153.4, größer; 模型 é",
		"\x1b]0;title\x07":            "�]0;title�",
		"a\tb\nc\rd":                  "a�b�c�d",
		"\u009b31m":                   "�31m", // an escape sequence's beginning in one character
		"\u202etxt.exe":               "�txt.exe",
		"line\u2028":                  "line�",
		"\xff\x00":                    "��",
	} {
		assert.Equal(t, want, Text(in), "%q", in)
	}
}

func FuzzText(f *testing.F) {
	f.Add("\x1b[2J\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := Text(s)
		assert.True(t, utf8.ValidString(got))
		for _, r := range got {
			assert.True(t, unicode.IsPrint(r), "%q", r)
		}
		assert.Equal(t, utf8.RuneCountInString(s), utf8.RuneCountInString(got))
		assert.Equal(t, got, Text(got))
	})
}
