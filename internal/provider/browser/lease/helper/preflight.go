package helper

import (
	"regexp"
	"strings"
	"unicode/utf16"

	"mcpagents/internal/provider/browser/lease"
)

// maxDiagnostic is how much of a helper's words are passed on: the last so many
// UTF-16 units, which is what users of the Node program know.
const maxDiagnostic = 2000

// What a helper says when it found before it began that there is nothing to show
// or nothing to show it with.
const (
	unverified = "GUI not verified"
	noDev      = "dev server not reachable"
)

var (
	minIO       = regexp.MustCompile(`(?i)minio`)
	unreachable = regexp.MustCompile(`(?i)not reachable|unreachable`)
)

// unavailable is the error of exit status 69. Lines of the helper that the
// caller can act on are passed on as they are.
func unavailable(out output) *lease.UnavailableError {
	said := tailOf(out.said())
	var dev, store string
	for line := range strings.Lines(string(out.stdout) + "\n" + string(out.stderr)) {
		line = strings.TrimSpace(strings.ToValidUTF8(line, "\ufffd"))
		if !strings.Contains(line, unverified) {
			continue
		}
		if dev == "" && strings.Contains(line, noDev) {
			dev = line
		}
		if store == "" && minIO.MatchString(line) && unreachable.MatchString(line) {
			store = line
		}
	}
	switch {
	case dev != "":
		return &lease.UnavailableError{Cause: lease.DevServer, Text: dev, Detail: said}
	case store != "":
		return &lease.UnavailableError{Cause: lease.MinIO, Text: store, Detail: said}
	}
	text := unverified + " — no browser box available"
	if said != "" {
		text += "\nLease helper: " + said
	}
	return &lease.UnavailableError{Cause: lease.NoBox, Text: text, Detail: said}
}

// tailOf is the end of a text, at most maxDiagnostic UTF-16 units of it.
func tailOf(s string) string {
	if len(s) <= maxDiagnostic {
		return s
	}
	units := utf16.Encode([]rune(s))
	if len(units) <= maxDiagnostic {
		return s
	}
	return string(utf16.Decode(units[len(units)-maxDiagnostic:]))
}
