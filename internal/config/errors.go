package config

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ExitUsage is the exit status of the process after a [UsageError].
const ExitUsage = 1

// maxEchoRunes bounds how much of a user's argument an error repeats.
const maxEchoRunes = 80

// UsageError is a command line or environment that cannot be served. Its text
// is one line without the "error: " in front and never holds a flag's value,
// which may be a secret in the wrong place; an unknown provider's name and an
// unknown option are the exceptions, because the user has to find them.
type UsageError struct {
	text   string
	report string // what stderr gets when that is not "error: " and the text
}

func (e *UsageError) Error() string { return e.text }

// Report returns what to write on stderr, with its final newline: one line
// "error: <text>", or for an unknown provider the two lines "[mcp-agents] …".
func (e *UsageError) Report() string {
	if e.report != "" {
		return e.report
	}
	return "error: " + e.text + "\n"
}

func usagef(format string, args ...any) *UsageError {
	return &UsageError{text: fmt.Sprintf(format, args...)}
}

func unknownProvider(name string) *UsageError {
	name = oneLine(name)
	names := make([]string, 0, len(Providers()))
	for _, p := range Providers() {
		names = append(names, string(p))
	}
	return &UsageError{
		text: "unknown provider: " + name,
		report: "[mcp-agents] Unknown provider: " + name + "\n" +
			"[mcp-agents] Available: " + strings.Join(names, ", ") + "\n",
	}
}

// oneLine makes an argument fit to be repeated in an error: short, and quoted
// when it could break the line or drive a terminal.
func oneLine(s string) string {
	if utf8.RuneCountInString(s) > maxEchoRunes {
		s = string([]rune(s)[:maxEchoRunes]) + "…"
	}
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unprintable) {
		return strconv.Quote(s)
	}
	return s
}
