package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	tierLine = "service_tier = \"fast\"\n"
	feature  = "[features]\nfast_mode = true\n"
)

func TestFastOptIn(t *testing.T) {
	tests := map[string]struct {
		source string
		want   bool
	}{
		"the pair":                     {tierLine + feature, true},
		"single quotes":                {"service_tier = 'fast'\n" + feature, true},
		"no spaces, no last newline":   {"service_tier=\"fast\"\n[features]\nfast_mode=true", true},
		"CRLF":                         {strings.ReplaceAll(tierLine+feature, "\n", "\r\n"), true},
		"spaces in the header":         {tierLine + "[ \tfeatures ] # why\n  fast_mode = true # yes\n", true},
		"quoted keys are the same key": {"\"service_tier\" = \"fast\"\n['features']\n\"fast_mode\" = true\n", true},
		"among others": {"model = \"m\"\n" + tierLine + "[history]\npersistence = \"none\"\n" + feature +
			"apps = true\n[tools]\nfast_mode = false\n", true},
		"beside decoys": {tierLine + "# service_tier = \"flex\"\nnote = \"\"\"\n[features]\nfast_mode = false\n\"\"\"\n" +
			"other = '''\nservice_tier = \"flex\"\n'''\n[profiles.p]\nservice_tier = \"flex\"\n[features.sub]\nfast_mode = false\n" +
			"[[list]]\nfast_mode = false\n" + feature + "# fast_mode = false\n", true},
		"a quote in a comment": {"# don't\n" + tierLine + feature, true},
		"a hash in a string":   {"x = \"#\"\n" + tierLine + feature, true},

		"nothing":        {"", false},
		"tier only":      {tierLine, false},
		"feature only":   {feature, false},
		"feature false":  {tierLine + "[features]\nfast_mode = false\n", false},
		"feature string": {tierLine + "[features]\nfast_mode = \"true\"\n", false},
		"tier flex":      {"service_tier = \"flex\"\n" + feature, false},
		"tier FAST":      {"service_tier = \"FAST\"\n" + feature, false},
		"tier bare":      {"service_tier = fast\n" + feature, false},
		"tier array":     {"service_tier = [\"fast\"]\n" + feature, false},

		"tier in a comment":       {"# " + tierLine + feature, false},
		"feature in a comment":    {tierLine + "[features]\n# fast_mode = true\n", false},
		"header in a comment":     {tierLine + "# [features]\nfast_mode = true\n", false},
		"tier in a text":          {"x = \"\"\"\n" + tierLine + "\"\"\"\n" + feature, false},
		"tier in a literal text":  {"x = '''\n" + tierLine + "'''\n" + feature, false},
		"feature in a text":       {tierLine + "x = \"\"\"\n" + feature + "\"\"\"\n", false},
		"text with a quote":       {"x = \"\"\"\\\"\"\"\n" + tierLine + "\"\"\"\n" + feature, false},
		"tier is a text":          {"service_tier = \"\"\"fast\"\"\"\n" + feature, false},
		"tier in a profile":       {"[profiles.fast]\n" + tierLine + feature, false},
		"tier after a table":      {feature + tierLine, false},
		"feature in a profile":    {tierLine + "[profiles.fast.features]\nfast_mode = true\n", false},
		"feature below features":  {tierLine + "[features.x]\nfast_mode = true\n", false},
		"feature at the top":      {tierLine + "fast_mode = true\n", false},
		"feature dotted":          {tierLine + "features.fast_mode = true\n", false},
		"feature dotted inside":   {tierLine + "[features]\nx.fast_mode = true\n", false},
		"feature inline":          {tierLine + "features = { fast_mode = true }\n", false},
		"array table":             {tierLine + "[[features]]\nfast_mode = true\n", false},
		"quoted dotted header":    {tierLine + "[\"features.x\"]\nfast_mode = true\n", false},
		"look-alike keys":         {"service_tier2 = \"fast\"\n[features]\nfast_mode2 = true\n", false},
		"look-alike table":        {tierLine + "[feature]\nfast_mode = true\n", false},
		"table left again":        {tierLine + "[features]\n[other]\nfast_mode = true\n", false},
		"duplicate tier":          {tierLine + tierLine + feature, false},
		"duplicate tier, differs": {"service_tier = \"flex\"\n" + tierLine + feature, false},
		"duplicate feature":       {tierLine + feature + "fast_mode = true\n", false},
		"duplicate, not the same": {tierLine + feature + "fast_mode = false\n", false},
		"duplicate, quoted":       {tierLine + "'service_tier' = 'fast'\n" + feature, false},
		"duplicate, two tables":   {tierLine + feature + "[other]\n" + feature, false},
		"unbalanced quote":        {"x = \"abc\n" + tierLine + feature, false},
		"unbalanced at the end":   {tierLine + feature + "x = 'abc\n", false},
		"mixed quotes":            {"service_tier = \"fast'\n" + feature, false},
		"unterminated text":       {tierLine + feature + "x = \"\"\"\nabc\n", false},
		"unterminated literal":    {tierLine + feature + "x = '''\nabc\n", false},
		"text after the value":    {"service_tier = \"fast\" fast\n" + feature, false},
		"unclosed header":         {tierLine + "[features\nfast_mode = true\n", false},
		"too long":                {tierLine + feature + "#" + strings.Repeat("x", maxSource), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, FastOptIn([]byte(tt.source)))
		})
	}
}

func TestReadFastOptIn(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	const token = "failed to read source Codex Fast-mode config"

	for _, absent := range []string{path, filepath.Join(dir, "no", "directory", FileName)} {
		got, err := ReadFastOptIn(absent)
		assert.NoError(t, err)
		assert.False(t, got)
	}

	require.NoError(t, os.WriteFile(path, []byte(tierLine+feature), 0o600))
	got, err := ReadFastOptIn(path)
	require.NoError(t, err)
	assert.True(t, got)

	got, err = ReadFastOptIn(filepath.Join(path, "below a file"))
	assert.NoError(t, err)
	assert.False(t, got)

	got, err = ReadFastOptIn(dir)
	assert.ErrorContains(t, err, token+": "+dir+" is not a regular file")
	assert.False(t, got)

	require.NoError(t, os.WriteFile(path, append([]byte(tierLine+feature), make([]byte, maxSource)...), 0o600))
	got, err = ReadFastOptIn(path)
	assert.ErrorContains(t, err, token)
	assert.False(t, got)
}

// FuzzFastOptIn holds every opt-in against the decoder: where it reads the file, the values
// are there.
func FuzzFastOptIn(f *testing.F) {
	f.Add([]byte(tierLine + feature))
	f.Add([]byte("service_tier='fast'\n[ features ]\nfast_mode=true"))
	f.Add([]byte("x = \"\"\"\n" + tierLine + "\"\"\"\n" + feature))
	f.Add([]byte(tierLine + "[[features]]\nfast_mode = true\n"))
	f.Add([]byte(tierLine + "features.fast_mode = true\n[a.b]\nc = [1, {d = 2}]\n"))
	f.Fuzz(func(t *testing.T, source []byte) {
		if !FastOptIn(source) {
			return
		}
		var doc struct {
			Tier     string         `toml:"service_tier"`
			Features map[string]any `toml:"features"`
		}
		if toml.Unmarshal(source, &doc) != nil {
			return
		}
		require.Equal(t, "fast", doc.Tier)
		require.Equal(t, true, doc.Features["fast_mode"])
	})
}
