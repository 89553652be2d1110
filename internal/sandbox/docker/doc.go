// Package docker is the runtime that makes each sandbox a container: remove on
// exit, attached before the start, no capabilities, a read-only root, tmpfs for
// home and /tmp, the workspace at its own path, and a seccomp profile that lets
// the CLI's own sandbox work.
package docker

// Labels of every container and image of ours.
const (
	LabelSandbox  = "mcp-agents.sandbox"  // container: the sandbox's id
	LabelInstance = "mcp-agents.instance" // container: its front end, for display
	LabelProvider = "mcp-agents.provider" // container
	LabelProtocol = "mcp-agents.protocol" // image: the protocol of its sandbox-init
	LabelCLI      = "mcp-agents.cli.version"
)

const (
	// Home is the private home inside every container, a tmpfs.
	Home = "/home/agent"
	// nobody is the uid and gid of Spec.NotRoot. It is no user's of a usual
	// system, and has an entry in no passwd file.
	nobody = 10001
	// account is the name that the commands see in USER and LOGNAME: their uid
	// may have no passwd entry.
	account = "agent"
	path    = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// Defaults of the limits: they fit a laptop.
const (
	DefaultMemory = 4 << 30
	DefaultCPUs   = 2
	DefaultPIDs   = 512
	// oomScore makes the kernel take a sandbox before the user's own programs.
	oomScore = 200
)
