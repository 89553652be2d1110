package setup

import (
	"fmt"
	"path/filepath"
	"strings"

	"mcpagents/internal/credentials"
	"mcpagents/internal/provider/gemini"
)

// Client is an MCP client whose configuration this package edits. The table of
// clients is the whole difference between them.
type Client struct {
	Name  string // on our command line
	Title string // for people
	// Provider is what one asks for in this client when nothing is said.
	Provider string

	project place // empty: the client has no file of a project that we write
	user    place // empty: the same for the user's own file
	format  format

	withType bool   // the entry says "type": "stdio"
	timeout  string // field of the deadline of a tool call; empty: the client has none
	perSec   bool   // that field counts seconds, not milliseconds
	approve  bool   // the entry can approve single tools in advance

	// pass is what an entry holds for the server to get keys of the client's
	// environment; nil where a server gets the whole of it.
	pass func(names []string) string

	// workspace and home are what the client expands to the directory of the
	// project and to the user's home; empty means that it expands nothing and
	// the entry gets absolute paths.
	workspace string
	home      string
}

// place is a configuration file.
type place struct {
	path string // below the project, or below the user's home
	// variable is an environment variable that replaces the directory of path,
	// with the file then called base.
	variable, base string
	mode           uint32 // of a file that we create
	dirMode        uint32 // of its directory
}

func (p place) at(dir string, getenv func(string) string) string {
	if p.variable != "" {
		if d := getenv(p.variable); d != "" {
			return filepath.Join(d, p.base)
		}
	}
	return filepath.Join(dir, filepath.FromSlash(p.path))
}

// clients is in the order of the documentation. Which client expands what:
//
//   - Claude Code expands ${NAME} of its own environment, in a project's file and
//     in the user's (seen with 2.1.197).
//   - Cursor and VS Code expand ${workspaceFolder} and ${userHome}.
//   - Gemini CLI expands ${NAME} of its own environment in its settings.
//   - Codex expands nothing.
var clients = []Client{
	{
		Name: "claude-code", Title: "Claude Code", Provider: "codex",
		// The project's file by default: its entry wins over the user's of the
		// same name, so the deadline has to be there.
		project: place{path: ".mcp.json", mode: 0o644, dirMode: 0o755},
		user:    place{path: ".claude.json", variable: "CLAUDE_CONFIG_DIR", base: ".claude.json", mode: 0o600, dirMode: 0o700},
		format:  jsonFormat{servers: "mcpServers"},
		timeout: "timeout", withType: true, workspace: "${PWD}", home: "${HOME}",
	},
	{
		Name: "codex", Title: "Codex", Provider: "claude",
		user:    place{path: ".codex/config.toml", variable: "CODEX_HOME", base: "config.toml", mode: 0o600, dirMode: 0o700},
		format:  tomlFormat{servers: "mcp_servers"},
		timeout: "tool_timeout_sec", perSec: true, approve: true,
		// Nothing but HOME, PATH and the like reaches a server.
		pass: func(names []string) string { return "env_vars = [" + strings.Join(quoteAll(names), ", ") + "]" },
	},
	{
		Name: "cursor", Title: "Cursor", Provider: "codex",
		project:  place{path: ".cursor/mcp.json", mode: 0o644, dirMode: 0o755},
		format:   jsonFormat{servers: "mcpServers", comments: true, trailing: true},
		withType: true, workspace: "${workspaceFolder}", home: "${userHome}",
	},
	{
		Name: "vscode", Title: "VS Code", Provider: "codex",
		project:  place{path: ".vscode/mcp.json", mode: 0o644, dirMode: 0o755},
		format:   jsonFormat{servers: "servers", comments: true, trailing: true},
		withType: true, workspace: "${workspaceFolder}", home: "${userHome}",
	},
	{
		Name: "gemini", Title: "Gemini CLI", Provider: "codex",
		project: place{path: ".gemini/settings.json", mode: 0o644, dirMode: 0o755},
		format:  jsonFormat{servers: "mcpServers", comments: true},
		timeout: "timeout", workspace: "${PWD}", home: "${HOME}",
		// What looks like a secret by its name is taken out of a server's environment (its
		// environmentSanitization.ts; read, not tried).
		pass: func(names []string) string {
			var members []string
			for _, name := range names {
				members = append(members, quote(name)+": "+quote("${"+name+"}"))
			}
			return `"env": {` + strings.Join(members, ", ") + "}"
		},
	},
}

// Clients returns the clients in the order of the documentation.
func Clients() []Client { return append([]Client(nil), clients...) }

func clientNamed(name string) (Client, error) {
	var names []string
	for _, c := range clients {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	return Client{}, &UsageError{fmt.Sprintf("unknown client %q: use one of %s", name, strings.Join(names, ", "))}
}

// service is what an entry starts, the same for every client.
type service struct {
	provider string
	entry    string   // name of the entry
	deadline int      // milliseconds: the server's own deadline and a minute or more beside it
	login    string   // directory of the login below the home; empty: none
	keys     []string // variables that log the CLI in without that directory
	approve  []string
}

var services = []service{
	// Two hours and five minutes: above the hard deadline of a Codex call, and
	// no progress extends it in a client.
	{provider: "codex", entry: "codex", deadline: 7_500_000, login: ".codex", keys: credentials.Codex("").KeyVariables},
	{provider: "claude", entry: "claude-code", deadline: 960_000, login: ".claude", keys: credentials.ClaudeKeyVariables,
		approve: []string{"claude-start", "claude-status", "claude-result", "claude-cancel"}},
	{provider: "gemini", entry: "gemini", deadline: 360_000, login: ".gemini", keys: gemini.KeyVariables},
	{provider: "browser", entry: "browser", deadline: 660_000},
}

func serviceOf(provider string) (service, error) {
	var names []string
	for _, s := range services {
		if s.provider == provider {
			return s, nil
		}
		names = append(names, s.provider)
	}
	return service{}, &UsageError{fmt.Sprintf("unknown provider %q: use one of %s", provider, strings.Join(names, ", "))}
}
