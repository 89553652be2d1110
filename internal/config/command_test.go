package config

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParseCommand(t *testing.T) {
	for text, want := range map[string][]string{
		"a":                  {"a"},
		"  a\tb\n c ":        {"a", "b", "c"},
		`'a b' "c d"`:        {"a b", "c d"},
		`a'b'"c"d`:           {"abcd"},
		`a '' ""`:            {"a", "", ""},
		`a\ b`:               {"a b"},
		`a "b\"c\\d\e"`:      {"a", `b"c\de`},
		`a 'b\'`:             {"a", `b\`},
		`a $HOME *.go ~ #x`:  {"a", "$HOME", "*.go", "~", "#x"},
		"a; b | c && d `e`":  {"a;", "b", "|", "c", "&&", "d", "`e`"},
		`["a", "b c", "'"]`:  {"a", "b c", "'"},
		` [ "a" ] `:          {"a"},
		"'[' x":              {"[", "x"},
		"ä \xff":             {"ä", "\xff"},
		"C:\\\\bin\\\\x.exe": {`C:\bin\x.exe`},
	} {
		got, err := ParseCommand(text)
		require.NoError(t, err, "%q", text)
		assert.Equal(t, want, got, "%q", text)
	}
}

func TestParseCommandErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":             "must be a nonblank command or JSON argv",
		" \t\n":        "must be a nonblank command or JSON argv",
		"[":            "contains invalid JSON argv: ",
		`["a"] b`:      "contains invalid JSON argv: ",
		`['a']`:        "contains invalid JSON argv: ",
		"[]":           "JSON argv must be a nonempty string array",
		`[""]`:         "JSON argv must be a nonempty string array",
		`["a",1]`:      "JSON argv must be a nonempty string array",
		`["a",null]`:   "JSON argv must be a nonempty string array",
		`["a",["b"]]`:  "JSON argv must be a nonempty string array",
		"a 'b":         "has an unterminated quote or escape",
		`a "b`:         "has an unterminated quote or escape",
		`a b\`:         "has an unterminated quote or escape",
		`"a\"`:         "has an unterminated quote or escape",
		"'' a":         "must contain an executable",
		`""`:           "must contain an executable",
		"a\x00b":       "must not contain a NUL character",
		`["a\u0000b"]`: "must not contain a NUL character",
	} {
		argv, err := ParseCommand(text)
		assert.Nil(t, argv, "%q", text)
		assert.ErrorContains(t, err, want, "%q", text)
	}
}

// quoteWords is the opposite of splitWords.
func quoteWords(argv []string) string {
	words := make([]string, len(argv))
	for i, a := range argv {
		words[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	return strings.Join(words, " ")
}

func TestQuotedWordsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		argv := rapid.SliceOfN(rapid.StringMatching(`[^\x00]{1,12}`), 1, 5).Draw(t, "argv")
		got, err := ParseCommand(quoteWords(argv))
		require.NoError(t, err)
		assert.Equal(t, argv, got)

		encoded, err := json.Marshal(argv)
		require.NoError(t, err)
		got, err = ParseCommand(string(encoded))
		require.NoError(t, err)
		assert.Equal(t, argv, got)
	})
}

func FuzzParseCommand(f *testing.F) {
	for _, seed := range []string{"", "a b", `a 'b c' "d\"e" f\ g`, `["a","b"]`, `["a",1]`, "'", `\`, "a\x00", "\xff\xfe x", "[\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		argv, err := ParseCommand(text)
		if err != nil {
			assert.Nil(t, argv)
			assert.NotContains(t, err.Error(), "\n")
			return
		}
		require.NotEmpty(t, argv)
		require.NotEmpty(t, argv[0])
		again, err := ParseCommand(quoteWords(argv))
		require.NoError(t, err)
		assert.Equal(t, argv, again)
	})
}
