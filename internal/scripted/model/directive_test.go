package model

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func text(s string) *string { return &s }

func TestParseDirectives(t *testing.T) {
	tests := []struct {
		name, prompt string
		want         []Step
	}{
		{"none", "fix the bug in main.go", nil},
		{"exec", "please [[exec: ls -l | wc]] now", []Step{{Exec: &Exec{Cmd: "ls -l | wc"}}}},
		{"no blank behind the colon", "[[exec:ls]]", []Step{{Exec: &Exec{Cmd: "ls"}}}},
		{"trailing blanks stay", "[[text: a ]]", []Step{{Answer: text("a ")}}},
		{"line ends in an argument", "[[exec: echo a\necho b]]", []Step{{Exec: &Exec{Cmd: "echo a\necho b"}}}},
		{"execlong", "[[execlong: sleep 5]]", []Step{{Exec: &Exec{Cmd: "sleep 5", Long: true}}}},
		{"escalate", "[[escalate: id]]", []Step{{Exec: &Exec{Cmd: "id", Escalate: true}}}},
		{"patch", `[[patch: a\nb]]`, []Step{{ApplyPatch: text("a\nb")}}},
		{"empty text", "[[text: ]]", []Step{{Answer: text("")}}},
		{"slow", "[[slow: 3]]", []Step{{Slow: &Slow{Deltas: 3, IntervalMS: 1000}}}},
		{"hang", "[[hang: 9]]", []Step{{Stall: &Stall{Seconds: 9}}}},
		{"hang for ever", "[[hang]]", []Step{{Stall: &Stall{}}}},
		{"status", "[[status: 429]]", []Step{{Status: &Status{Code: 429}}}},
		{"incomplete", "[[incomplete]]", []Step{{Cut: &Cut{}}}},
		{"megabyte", "[[megabyte: 7]]", []Step{{Megabyte: &Megabyte{Bytes: 7}}}},
		{"wide megabyte", "[[megabyte: 7 multibyte]]", []Step{{Megabyte: &Megabyte{Bytes: 7, Multibyte: true}}}},
		{"order is kept", "[[text: b]][[exec: a]]", []Step{{Answer: text("b")}, {Exec: &Exec{Cmd: "a"}}}},
		{"ends at the first brackets", "[[text: a]] b]]", []Step{{Answer: text("a")}}},
		{"one bracket more", "[[[text: a]]", []Step{{Answer: text("a")}}},
		{"unknown names are text", "see [[wiki]] and [[Exec: ls]] and [[execute: ls]]", nil},
		{"shell conditions are text", "if [[ -f x ]]; then", nil},
		{"unclosed is text", "[[exec: ls", nil},
		{"unclosed before a closed one", "[[ [[text: a]]", []Step{{Answer: text("a")}}},
		{"blank before the colon is text", "[[exec : ls]]", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseDirectives(tt.prompt)
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestParseDirectivesErrors(t *testing.T) {
	for prompt, want := range map[string]string{
		"[[exec: ]]":               "directive [[exec]]: exec: cmd must be a command",
		"[[exec]]":                 "directive [[exec]]: exec: cmd must be a command",
		"[[patch:  ]]":             "directive [[patch]]: apply_patch: the patch is empty",
		"[[slow: secret]]":         "directive [[slow]]: the argument must be a whole number",
		"[[slow: 0]]":              "directive [[slow]]: slow: deltas is 0, must be 1 to 100000",
		"[[hang: -1]]":             "directive [[hang]]: stall: seconds is -1, must be 0 to 86400",
		"[[status: 200]]":          "directive [[status]]: status: code is 200, must be 400 to 599",
		"[[status]]":               "directive [[status]]: the argument must be a whole number",
		"[[megabyte: 1e6]]":        "directive [[megabyte]]: the argument must be a whole number",
		"[[megabyte: 99999999]]":   "directive [[megabyte]]: megabyte: bytes is 99999999, must be 1 to 67108864",
		"[[text: ok]] [[slow: x]]": "directive [[slow]]",
	} {
		_, err := ParseDirectives(prompt)
		require.ErrorContains(t, err, want, prompt)
		assert.NotContains(t, err.Error(), "secret", "an argument may be private")
	}
}

func FuzzDirectives(f *testing.F) {
	for _, seed := range []string{"[[exec: ls]] [[text: done]]", "[[[[exec: a]]]]", "[[slow: 3", "[[hang]]",
		`[[patch: *** Begin Patch\n]]`, "[[megabyte: 5 multibyte]]", "[[status:401]]é[[", "[[incomplete: x]]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, prompt string) {
		steps, err := ParseDirectives(prompt)
		if err != nil {
			require.Empty(t, steps)
			return
		}
		require.LessOrEqual(t, len(steps), strings.Count(prompt, "]]"), "every directive is closed")
		for _, step := range steps {
			require.NoError(t, step.validate(), "what is parsed can be played")
			if step.Exec != nil {
				require.Contains(t, prompt, step.Exec.Cmd)
				require.NotContains(t, step.Exec.Cmd, "]]")
			}
			if step.Answer != nil && utf8.ValidString(prompt) {
				require.True(t, utf8.ValidString(*step.Answer))
			}
		}
		// Text in front that opens nothing changes nothing.
		again, err := ParseDirectives("say: " + prompt)
		require.NoError(t, err)
		require.Equal(t, steps, again)
	})
}
