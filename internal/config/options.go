package config

import (
	"log/slog"
	"time"
)

// Action is what the command line asks for.
type Action int

const (
	// ActionServe runs the MCP server of Options.Provider on stdin and stdout.
	ActionServe Action = iota
	// ActionHelp prints [Help] on stdout and exits 0.
	ActionHelp
	// ActionVersion prints "mcp-agents v<version>" on stdout and exits 0.
	ActionVersion
)

// Provider names a tool surface and the program behind it.
type Provider string

const (
	ProviderClaude  Provider = "claude"
	ProviderGemini  Provider = "gemini"
	ProviderCodex   Provider = "codex"
	ProviderBrowser Provider = "browser"
)

// Providers lists every provider in the order in which users are told of them.
func Providers() []Provider {
	return []Provider{ProviderClaude, ProviderGemini, ProviderCodex, ProviderBrowser}
}

// Runtime names what makes sandboxes.
type Runtime string

const (
	RuntimeDocker Runtime = "docker"
	RuntimeLocal  Runtime = "local"
)

// Access says what a sandbox may do with the workspace.
type Access string

const (
	AccessReadWrite Access = "rw"
	AccessReadOnly  Access = "ro"
)

// LogFormat is the form of the lines on stderr.
type LogFormat string

const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// Options is a complete command line: every field holds its flag's value, its
// environment variable's, or its default. When Action is not [ActionServe] the
// rest is unspecified, because parsing stopped there.
type Options struct {
	Action   Action
	Provider Provider
	Server   Server
	Codex    Codex
	Claude   Claude
	Gemini   Gemini
	Browser  Browser
	Sandbox  Sandbox
}

// Server holds what concerns the front end itself.
type Server struct {
	HandshakeTimeout time.Duration // more than zero
	StdioIdleTimeout time.Duration // zero: off
	ParentWatchdog   time.Duration // time between two looks at the parent; zero: off
	MaxMessageBytes  int64         // 1 KiB to 1 GiB
	MaxResultChars   int64         // code points of a blocking answer of claude or gemini
	LogLevel         slog.Level
	LogFormat        LogFormat
}

// Codex holds the settings of provider codex.
type Codex struct {
	Home             string   // the user's codex home: $CODEX_HOME, else $HOME/.codex, else <tmp>/.codex
	Models           []string // offered to callers, without duplicates, never empty
	Model            string   // never empty; need not be one of Models
	ReasoningEffort  string
	SandboxMode      string // checked at start against what the CLI takes, not here
	ApprovalPolicy   string // the same
	WorkspaceNetwork bool
	Goal             string // empty: none

	Timeout          time.Duration // hard deadline of a request, more than zero
	IdleTimeout      time.Duration // zero: off
	CancelGrace      time.Duration
	StatusInterval   time.Duration // zero: every change moves the cursor; at most MaxTimer
	TerminalGrace    time.Duration
	ClientGoneGrace  time.Duration
	FlushStall       time.Duration
	ProgressInterval time.Duration
	WaitInterval     time.Duration
}

// Claude holds the settings of provider claude.
type Claude struct {
	Model          string
	Effort         string
	Timeout        time.Duration // of a blocking call, more than zero
	JobTimeout     time.Duration // of a background job, more than zero
	TrustWorkspace bool          // let Claude Code run the workspace's own hooks and servers
}

// Gemini holds the settings of provider gemini.
type Gemini struct {
	Timeout time.Duration // more than zero
}

// Browser holds the settings of provider browser.
type Browser struct {
	LeaseCommand       []string // nil: the embedded lease
	Command            []string // nil: chrome-devtools-mcp is looked for
	Viewport           string   // WIDTHxHEIGHT
	AppPort            int      // zero: none
	Network            string   // of the embedded lease: bridge or none
	Image              string   // of the embedded lease's browser; empty: this build's
	LogFile            string   // empty: none
	AllowedURLPatterns []string
	IdleTimeout        time.Duration // zero: off
	Timeout            time.Duration // more than zero
}

// Sandbox holds what every sandbox is made of.
type Sandbox struct {
	Runtime         Runtime
	DockerHost      string   // empty: found as the docker command finds it
	Image           string   // empty: the provider's own
	Workspaces      []string // as given, unresolved; empty: the startup directory
	Access          Access
	Network         string // bridge, none, host, container:ID or a network's name
	User            *User  // nil: chosen from the workspace's owner
	MemoryBytes     int64
	NanoCPUs        int64 // billionths of a CPU, the engine's unit
	PidsLimit       int64
	StopGrace       time.Duration
	LifelineTimeout time.Duration // more than zero
	Env             []string      // names only; values are read when a CLI is spawned
	CAFile          string
	SelfContainer   string
	OCIRuntime      string
	ModelBaseURL    string
	AuthSource      string
	Warm            int64 // spare sandboxes, 0 to 64
}

// User is a numeric identity in a sandbox.
type User struct {
	UID, GID uint32
}
