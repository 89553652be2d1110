package config

import (
	"fmt"
	"regexp"
	"strconv"
)

// Version is a release of the Codex CLI.
type Version struct{ Major, Minor, Patch int }

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

var versionPattern = regexp.MustCompile(`(\d+)\.(\d+)\.(\d+)`)

// ParseVersion finds the first N.N.N in the output of "codex --version". It is false where
// there is none, and for numbers that no release will have.
func ParseVersion(output string) (Version, bool) {
	match := versionPattern.FindStringSubmatch(output)
	if match == nil {
		return Version{}, false
	}
	var numbers [3]int
	for i := range numbers {
		n, err := strconv.ParseInt(match[i+1], 10, 32)
		if err != nil {
			return Version{}, false
		}
		numbers[i] = int(n)
	}
	return Version{numbers[0], numbers[1], numbers[2]}, true
}

// Gate says whether a CLI knows the setting agents.enabled. An earlier one has only the
// multi_agent feature to switch subagents, and would not start on a table it does not know.
type Gate bool

// GateOf opens the gate from 0.145 on, and for a version that is not known: the image's is
// far newer.
func GateOf(v Version, known bool) Gate {
	return Gate(!known || v.Major > 0 || v.Minor >= 145)
}

// String is the gate's name in the start line of the log.
func (g Gate) String() string {
	if g {
		return "agents_enabled"
	}
	return "feature_flag_only"
}
