package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
)

// configured reads the servers of a client's configuration, sorted by name. As
// Claude Code does it expands $NAME and ${NAME} of the environment in all values.
func configured(path string, getenv func(string) string) ([]*server, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	var file struct {
		Servers map[string]struct {
			Command string            `json:"command"`
			Args    []string          `json:"args"`
			Env     map[string]string `json:"env"`
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var servers []*server
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) {
		entry := file.Servers[name]
		if entry.Command == "" {
			return nil, fmt.Errorf("%s: server %s has no command: only servers on stdio can be measured", path, name)
		}
		s := &server{name: path + ": " + name, argv: []string{os.Expand(entry.Command, getenv)}}
		for _, arg := range entry.Args {
			s.argv = append(s.argv, os.Expand(arg, getenv))
		}
		for _, key := range slices.Sorted(maps.Keys(entry.Env)) {
			s.env = append(s.env, key+"="+os.Expand(entry.Env[key], getenv))
		}
		servers = append(servers, s)
	}
	return servers, nil
}
