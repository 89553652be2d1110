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

// extraCalls are what the sandboxes that CLIs make for themselves need beyond
// the default profile, unconditionally. Each was found by removing it from a
// set that worked: without one of Codex's (bubblewrap), every command of a turn
// fails while the turn itself "completes". The user and mount namespaces that
// they make have no privilege outside.
var extraCalls = map[string][]string{
	"codex":    {"clone", "unshare", "mount", "umount2", "pivot_root"},
	"chromium": {"clone", "unshare", "chroot"}, // without one it exits with "Zygote process exited prematurely"
}

// Profile is the seccomp profile of a provider's sandboxes as JSON.
func Profile(provider string) (string, error) {
	calls, ok := extraCalls[provider]
	if !ok {
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
