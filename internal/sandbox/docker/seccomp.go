package docker

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

// defaultProfile is the default profile of github.com/moby/profiles/seccomp as
// JSON. That package builds on Linux only and front ends run elsewhere too, so
// a copy stands here; a test on Linux compares the two and renews it.
//
//go:embed seccomp_default.json
var defaultProfile []byte

// Profile is the default seccomp profile as JSON, with one rule more that allows
// the given system calls unconditionally.
func Profile(calls []string) (string, error) {
	if len(calls) == 0 {
		return string(defaultProfile), nil
	}
	var profile map[string]json.RawMessage
	if err := json.Unmarshal(defaultProfile, &profile); err != nil {
		return "", fmt.Errorf("decode the seccomp profile: %w", err)
	}
	var rules []json.RawMessage
	if err := json.Unmarshal(profile["syscalls"], &rules); err != nil {
		return "", fmt.Errorf("decode the seccomp profile: %w", err)
	}
	rule, err := json.Marshal(map[string]any{"names": calls, "action": "SCMP_ACT_ALLOW"})
	if err != nil {
		return "", fmt.Errorf("encode the seccomp profile: %w", err)
	}
	if profile["syscalls"], err = json.Marshal(append(rules, rule)); err != nil {
		return "", fmt.Errorf("encode the seccomp profile: %w", err)
	}
	b, err := json.Marshal(profile)
	if err != nil {
		return "", fmt.Errorf("encode the seccomp profile: %w", err)
	}
	return string(b), nil
}
