package setup

import (
	"path"
	"slices"
	"strings"
)

// image is the front end's image, as the documentation builds it.
const image = "mcp-agents"

// socket is where an engine listens, outside and in the front end's container.
const socket = "/var/run/docker.sock"

// field is one member of an entry: a string, a []string or an int.
type field struct {
	name  string
	value any
}

// entry is what a client needs to start a server, its fields in the order in
// which they are written.
type entry struct {
	fields []field
	// approve are tools that the client lets run without asking.
	approve []string
}

// newEntry is the entry that starts a service from a client.
func newEntry(c Client, s service, req Request) entry {
	command, args := req.Binary, []string{"--provider", s.provider}
	if req.Docker {
		command, args = "docker", dockerArgs(c, s, req)
	}
	var e entry
	if c.withType {
		e.fields = append(e.fields, field{"type", "stdio"})
	}
	e.fields = append(e.fields, field{"command", command}, field{"args", args})
	if c.timeout != "" {
		deadline := s.deadline
		if c.perSec {
			deadline /= 1000
		}
		e.fields = append(e.fields, field{c.timeout, deadline})
	}
	if c.approve {
		e.approve = s.approve
	}
	return e
}

// dockerArgs starts the front end in a container that sees the workspace and
// the login at the paths that they have outside, because the sandboxes that it
// makes are its siblings. The login's directory is mounted, not the file: a
// refreshed login is renamed over the old one.
func dockerArgs(c Client, s service, req Request) []string {
	home, workspace := c.home, c.workspace
	if home == "" {
		home, workspace = req.Home, req.Dir
	}
	args := []string{"run", "-i", "--rm", "-v", socket + ":" + socket}
	if s.login != "" {
		login := home + "/" + s.login
		args = append(args, "-v", login+":"+login)
	}
	return append(args, "-v", workspace+":"+workspace, "-w", workspace, "-e", "HOME", image, "--provider", s.provider)
}

// startsUs reports whether a decoded entry, in whatever hand, starts this
// program with the provider.
func startsUs(value any, provider string) bool {
	m, ok := value.(map[string]any)
	if !ok {
		return false
	}
	command, _ := m["command"].(string)
	base := strings.TrimSuffix(path.Base(strings.ReplaceAll(command, `\`, "/")), ".exe")
	list, _ := m["args"].([]any)
	var args []string
	for _, a := range list {
		s, _ := a.(string)
		args = append(args, s)
	}
	if base == "docker" || base == "podman" {
		at := slices.IndexFunc(args, isImage)
		if at < 0 {
			return false
		}
		args = args[at+1:]
	} else if !strings.HasPrefix(base, "mcp-agents") {
		return false
	}
	return providerOf(args) == provider
}

func isImage(arg string) bool {
	name, _, _ := strings.Cut(arg, "@")
	name, _, _ = strings.Cut(path.Base(name), ":")
	return name == image && !strings.HasPrefix(arg, "/") && !strings.HasPrefix(arg, "-")
}

// providerOf is the provider that a server with these arguments has; codex is
// the default.
func providerOf(args []string) string {
	provider := "codex"
	for i, a := range args {
		if v, ok := strings.CutPrefix(a, "--provider="); ok {
			provider = v
		} else if a == "--provider" && i+1 < len(args) {
			provider = args[i+1]
		}
	}
	return provider
}
