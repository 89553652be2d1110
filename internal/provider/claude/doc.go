// Package claude offers Claude Code as MCP tools: one that waits for the answer
// (claude_code) and those of background reviews (claude-start and its kin).
//
// Each turn has a sandbox of its own and is over when that is verified gone. A
// review sees the workspace through a read-only mount, so that its not writing
// does not depend on the CLI's own flags.
//
// Claude Code takes settings from the workspace it works in, and some of them
// run programs or send requests elsewhere, with the login: hooks, servers,
// helpers for keys, variables. A workspace may come from anywhere, so unless the
// operator trusts it none of them is loaded.
package claude
