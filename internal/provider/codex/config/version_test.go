package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParseVersion(t *testing.T) {
	tests := map[string]struct {
		output string
		want   Version
		known  bool
	}{
		"codex":                {"codex-cli 0.153.4\n", Version{0, 153, 4}, true},
		"the first one":        {"codex 0.144.9 (protocol 9.9.9)", Version{0, 144, 9}, true},
		"in the middle":        {"v1.2.3-alpha.4", Version{1, 2, 3}, true},
		"four numbers":         {"1.2.3.4", Version{1, 2, 3}, true},
		"nothing":              {"", Version{}, false},
		"two numbers":          {"codex 1.2", Version{}, false},
		"words":                {"codex-cli dev", Version{}, false},
		"an impossible number": {"99999999999999999999.0.0", Version{}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, known := ParseVersion(tt.output)
			assert.Equal(t, tt.want, got)
			assert.Equal(t, tt.known, known)
		})
	}
	assert.Equal(t, "0.153.4", Version{0, 153, 4}.String())
}

func TestGateOf(t *testing.T) {
	tests := []struct {
		output string
		want   string
	}{
		{"codex-cli 0.130.0", "feature_flag_only"},
		{"codex-cli 0.144.9", "feature_flag_only"},
		{"codex-cli 0.145.0", "agents_enabled"},
		{"codex-cli 0.153.4", "agents_enabled"},
		{"codex-cli 1.2.3", "agents_enabled"},
		{"unknown", "agents_enabled"},
	}
	for _, tt := range tests {
		assert.Equal(t, tt.want, GateOf(ParseVersion(tt.output)).String(), tt.output)
	}
}

func FuzzParseVersion(f *testing.F) {
	f.Add("codex-cli 0.153.4")
	f.Add("99999999999999999999.1.2 3.4.5")
	f.Fuzz(func(t *testing.T, output string) {
		v, known := ParseVersion(output)
		if !known {
			assert.Zero(t, v)
			return
		}
		again, known := ParseVersion(v.String())
		assert.True(t, known)
		assert.Equal(t, v, again)
	})
}
