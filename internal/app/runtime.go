package app

import (
	"fmt"
	"os"

	"mcpagents/internal/config"
	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/docker"
	"mcpagents/internal/sandbox/local"
)

// RuntimeByName is the runtime docker, with the engine at the address if there is
// one, or local.
func RuntimeByName(name, host string) (sandbox.Runtime, error) {
	switch name {
	case "docker":
		return docker.New(host)
	case "local":
		return localWithHomes()
	}
	return nil, fmt.Errorf("unknown runtime %q: use docker or local", name)
}

// localWithHomes is the local runtime that knows where private homes are: below
// this directory for codex, in the user's cache for the others.
func localWithHomes() (sandbox.Runtime, error) {
	rt, err := local.New()
	if err != nil {
		return nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find this directory: %w", err)
	}
	rt.AddRoot(codexHomes(dir), homePrefix)
	for _, p := range []config.Provider{config.ProviderClaude, config.ProviderGemini} {
		rt.AddRoot(privateHomes(), "mcp-agents-"+string(p)+"-")
	}
	return rt, nil
}
