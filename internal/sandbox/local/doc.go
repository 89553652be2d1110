// Package local is the runtime without an engine: sandbox-init as a supervised
// process tree on this machine, with a private home in place of a container.
//
// It gives the lifeline, the grace, the signals and the login rules of a
// container, and isolates nothing: a command sees the whole file system of the
// user. It exists for machines without an engine and for tests, is chosen only
// by name, and says what it does not do when it starts.
package local

import (
	"os"
	"slices"
	"strings"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/guest"
)

// sessionVariables belong to a session of Claude Code or Codex that runs us as
// its tool. Passed on, they make the inner CLI believe that it is the outer one.
var sessionVariables = []string{"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SESSION_ID",
	"CLAUDE_CODE_CHILD_SESSION", "CODEX_HOME", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID",
	"CODEX_INTERNAL_ORIGINATOR_OVERRIDE", "CODEX_CI", guest.Marker}

// Environ is the environment of this process without the variables of an outer
// session.
func (r *Runtime) Environ(sandbox.Spec) []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(sessionVariables, name)
	})
}

// Name is local.
func (r *Runtime) Name() string { return "local" }
