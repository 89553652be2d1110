// Package config makes the private configuration of a Codex CLI in a sandbox.
//
// The CLI never sees the user's own config.toml: it could name servers, hooks and plugins that
// would run with the copied login. It gets a generated one, from the server's flags, from the
// CLI's version and from the only thing taken over from the user's file, the opt-in to Fast
// mode. The login beside it is package login's.
package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// FileName is the name of the configuration in the CLI's home, and of the user's own.
const FileName = "config.toml"

// Config is what varies in the generated configuration. Strings may hold anything; bytes that
// are not UTF-8 become U+FFFD, since TOML has no way to write them.
type Config struct {
	Model            string
	ReasoningEffort  string
	ApprovalPolicy   string // see [ValidateApproval]
	SandboxMode      string // see [ValidateSandbox]
	WorkspaceNetwork bool   // network for the model's commands in workspace-write
	Fast             bool   // see [FastOptIn]
	AgentsGate       Gate   // see [GateOf]
	BaseURL          string // a model endpoint in place of the vendor's; empty for the vendor's
}

// TOML is the text of config.toml. Each line is exactly "key = value": its readers compare
// whole lines. It turns off all that would reach out or run something on its own: update
// checks, login shells, history, apps, hooks, plugins, subagents (calls may ask for these) and
// analytics, which also delays the exit by seconds where there is no network. Variables with
// secrets in their names are kept from the model's commands.
func (c Config) TOML() []byte {
	var w writer
	w.text("model", c.Model)
	w.text("model_reasoning_effort", c.ReasoningEffort)
	if c.Fast {
		w.text("service_tier", fastTier)
	}
	w.text("approval_policy", c.ApprovalPolicy)
	w.text("sandbox_mode", c.SandboxMode)
	w.text("web_search", "cached")
	w.flag("check_for_update_on_startup", false)
	w.flag("allow_login_shell", false)
	if c.BaseURL != "" {
		w.text("openai_base_url", c.BaseURL)
	}

	w.table("sandbox_workspace_write")
	w.flag("network_access", c.WorkspaceNetwork)

	w.table("history")
	w.text("persistence", "none")

	w.table(featuresTable)
	for _, feature := range []string{"apps", "hooks", "plugins", "multi_agent", "skill_mcp_dependency_install"} {
		w.flag(feature, false)
	}
	if c.Fast {
		w.flag(fastFeature, true)
	}

	if c.AgentsGate {
		w.table("agents")
		w.flag("enabled", false)
	}

	w.table("analytics")
	w.flag("enabled", false)

	w.table("shell_environment_policy")
	w.flag("ignore_default_excludes", false)
	return []byte(w.String())
}

// writer writes the subset of TOML that the configuration needs.
type writer struct{ strings.Builder }

func (w *writer) table(name string)             { fmt.Fprintf(w, "\n[%s]\n", name) }
func (w *writer) flag(key string, value bool)   { fmt.Fprintf(w, "%s = %t\n", key, value) }
func (w *writer) text(key string, value string) { fmt.Fprintf(w, "%s = %s\n", key, quote(value)) }

// quote writes s as a string that JSON and TOML 1.0 both read as s. They differ in one
// character: TOML wants U+007F escaped, JSON allows it.
func quote(s string) string {
	out := make([]byte, 0, len(s)+2)
	out = append(out, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			out = append(out, '\\', byte(r))
		case r == '\b':
			out = append(out, `\b`...)
		case r == '\t':
			out = append(out, `\t`...)
		case r == '\n':
			out = append(out, `\n`...)
		case r == '\f':
			out = append(out, `\f`...)
		case r == '\r':
			out = append(out, `\r`...)
		case r < ' ' || r == 0x7f:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = utf8.AppendRune(out, r)
		}
	}
	return string(append(out, '"'))
}

// What Codex 0.153.4 accepts. It exits before it answers initialize on anything else, on the
// approval policy "untrusted" of earlier releases too.
var (
	approvalPolicies = []string{"never", "on-request", "on-failure"}
	sandboxModes     = []string{"read-only", "workspace-write", "danger-full-access"}
)

// ValidateApproval refuses an approval policy that the CLI would exit on.
func ValidateApproval(policy string) error {
	return oneOf("approval policy", "--approval_policy", policy, approvalPolicies)
}

// ValidateSandbox refuses a sandbox mode that the CLI would exit on.
func ValidateSandbox(mode string) error {
	return oneOf("sandbox mode", "--sandbox_mode", mode, sandboxModes)
}

func oneOf(what, flag, value string, allowed []string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s %q is not one that Codex takes: set %s to one of %s",
		what, value, flag, strings.Join(allowed, ", "))
}
