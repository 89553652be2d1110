package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// entry is how a client starts a server.
type entry struct {
	Command string            `json:"command" toml:"command"`
	Args    []string          `json:"args" toml:"args"`
	Env     map[string]string `json:"env" toml:"env"`
}

// configured reads the servers of a client's configuration, sorted by name:
// {"mcpServers": …} as Claude Code, Cursor and Gemini CLI have it, {"servers":
// …} of VS Code, and [mcp_servers.…] of Codex where the file ends in .toml. As
// those clients do it expands $NAME and ${NAME} of the environment in all
// values, and ${userHome} and ${workspaceFolder} as the home and this
// directory; Codex expands nothing.
func configured(path string, getenv func(string) string) ([]*server, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	expand := func(value string) string { return os.Expand(value, clientVariables(getenv)) }
	var file struct {
		Servers map[string]entry `json:"mcpServers" toml:"-"`
		VSCode  map[string]entry `json:"servers" toml:"-"`
		Codex   map[string]entry `json:"-" toml:"mcp_servers"`
	}
	if filepath.Ext(path) == ".toml" {
		err = toml.Unmarshal(data, &file)
		expand = strings.Clone
	} else {
		err = json.Unmarshal(data, &file)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var servers []*server
	for _, entries := range []map[string]entry{file.Servers, file.VSCode, file.Codex} {
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			e := entries[name]
			if e.Command == "" {
				return nil, fmt.Errorf("%s: server %s has no command: only servers on stdio can be measured", path, name)
			}
			s := &server{name: path + ": " + name, argv: []string{expand(e.Command)}}
			for _, arg := range e.Args {
				s.argv = append(s.argv, expand(arg))
			}
			for _, key := range slices.Sorted(maps.Keys(e.Env)) {
				s.env = append(s.env, key+"="+expand(e.Env[key]))
			}
			servers = append(servers, s)
		}
	}
	return servers, nil
}

// clientVariables adds to the environment what clients call the home and the
// project.
func clientVariables(getenv func(string) string) func(string) string {
	return func(name string) string {
		switch name {
		case "userHome":
			name = "HOME"
		case "workspaceFolder":
			name = "PWD"
		}
		return getenv(name)
	}
}
