package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	errCommandBlank    = errors.New("must be a nonblank command or JSON argv")
	errCommandArray    = errors.New("JSON argv must be a nonempty string array")
	errCommandUnclosed = errors.New("has an unterminated quote or escape")
	errCommandNoExec   = errors.New("must contain an executable")
	errCommandNUL      = errors.New("must not contain a NUL character")
)

// ParseCommand reads a command of an operator as an argument list that is run
// without a shell. Text that begins with "[" is a JSON array of nonempty
// strings. Anything else is split at white space: single quotes keep all, in
// double quotes and outside quotes a backslash keeps the next character, and
// nothing is expanded. An error is the rest of a sentence whose subject the
// caller knows ("browser command " + err.Error()).
func ParseCommand(text string) ([]string, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return nil, errCommandBlank
	case strings.ContainsRune(text, 0):
		return nil, errCommandNUL
	case text[0] == '[':
		return parseJSONArgv(text)
	}
	argv, err := splitWords(text)
	if err != nil {
		return nil, err
	}
	if len(argv) == 0 || argv[0] == "" {
		return nil, errCommandNoExec
	}
	return argv, nil
}

func parseJSONArgv(text string) ([]string, error) {
	var items []any
	if err := json.Unmarshal([]byte(text), &items); err != nil {
		return nil, fmt.Errorf("contains invalid JSON argv: %w", err)
	}
	if len(items) == 0 {
		return nil, errCommandArray
	}
	argv := make([]string, 0, len(items))
	for _, item := range items {
		s, ok := item.(string)
		if !ok || s == "" {
			return nil, errCommandArray
		}
		if strings.ContainsRune(s, 0) {
			return nil, errCommandNUL
		}
		argv = append(argv, s)
	}
	return argv, nil
}

// splitWords goes byte-true through the text: what is not a quote, a backslash
// or white space is copied as it is, valid UTF-8 or not.
func splitWords(text string) ([]string, error) {
	var (
		words   []string
		word    strings.Builder
		started bool // a word may be empty: ''
		escaped bool
		quote   rune
	)
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		raw := text[i : i+size]
		i += size
		switch {
		case escaped:
			word.WriteString(raw)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, started = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, started = r, true
		case quote == 0 && unicode.IsSpace(r):
			if started {
				words = append(words, word.String())
				word.Reset()
				started = false
			}
		default:
			word.WriteString(raw)
			started = true
		}
	}
	if quote != 0 || escaped {
		return nil, errCommandUnclosed
	}
	if started {
		words = append(words, word.String())
	}
	return words, nil
}
