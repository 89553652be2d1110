// Package plain makes text that others chose safe to show. On a shared engine
// labels are anybody's: an escape sequence would act on the user's terminal, and
// a line break or a tab would forge a row of a table.
package plain

import (
	"strings"
	"unicode"
)

// Text is s with U+FFFD in place of each character that prints nothing, such as
// controls and marks of direction, and of what is no UTF-8.
func Text(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
