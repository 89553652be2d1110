package config

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// checkParse holds for every argument list and environment: no panic, an error
// is one printable line of the known type, and the same input gives the same
// result.
func checkParse(t require.TestingT, argv []string, env map[string]string) {
	o, err := Parse(argv, environment(env))
	again, errAgain := Parse(argv, environment(env))
	assert.Equal(t, o, again)
	assert.Equal(t, err, errAgain)
	if err == nil {
		if o.Action == ActionServe {
			assert.Contains(t, Providers(), o.Provider)
			assert.NotEmpty(t, o.Codex.Models)
			assert.NotEmpty(t, o.Codex.Model)
			assert.Positive(t, o.Codex.Timeout)
			assert.GreaterOrEqual(t, o.Codex.ClientGoneGrace, time.Duration(0))
			assert.Positive(t, o.Sandbox.MemoryBytes)
			assert.Positive(t, o.Sandbox.LifelineTimeout)
		}
		return
	}
	var usage *UsageError
	require.ErrorAs(t, err, &usage)
	assert.Equal(t, Options{}, o)
	assert.NotEmpty(t, usage.Error())
	assert.NotContains(t, usage.Error(), "\n")
	report := usage.Report()
	assert.True(t, strings.HasSuffix(report, "\n"))
	if strings.HasPrefix(report, "error: ") {
		assert.Equal(t, "error: "+usage.Error()+"\n", report)
	} else {
		assert.Equal(t, 2, strings.Count(report, "\n"))
	}
}

func FuzzParse(f *testing.F) {
	f.Add("--provider\x00claude\x00--timeout=7", "1000")
	f.Add("--help\x00--bogus", "")
	f.Add("--browser_viewport\x001x1\x00--provider=browser", "[")
	f.Add("--user=1:2\x00--memory\x004g\x00--network\x00container:x", "-1")
	f.Add("--provider\x00a\nb", "\xff")
	for _, flag := range Flags() {
		f.Add("--"+flag.Name, "x")
		f.Add("--provider=browser\x00--"+flag.Name+"\x00"+samples[flag.Name][0], samples[flag.Name][1])
	}
	f.Fuzz(func(t *testing.T, args, value string) {
		argv := strings.Split(args, "\x00")
		checkParse(t, argv, nil)
		env := make(map[string]string)
		for i, name := range EnvNames() {
			if (len(args)+i)%7 == 0 { // a few variables at a time, or the first bad one would hide the rest
				env[name] = value
			}
		}
		checkParse(t, argv, env)
	})
}

func TestParseProperties(t *testing.T) {
	names := Names()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.OneOf(rapid.SampledFrom(names), rapid.SampledFrom([]string{"", "1", "0", "x", "browser", "claude", "true"}),
			rapid.StringN(0, 12, 40))
		argv := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			if rapid.Bool().Draw(t, "inline") {
				return rapid.SampledFrom(names).Draw(t, "name") + "=" + word.Draw(t, "value")
			}
			return word.Draw(t, "word")
		}), 0, 6).Draw(t, "argv")
		checkParse(t, argv, rapid.MapOfN(rapid.SampledFrom(EnvNames()), word, 0, 3).Draw(t, "env"))
	})
}
