package model

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
)

const (
	maxScenarioBytes = 4 << 20
	maxScenarioSteps = 1000
)

//go:embed scenarios/*.json
var scenarioFiles embed.FS

// Scenario is a script: its steps answer the requests of every turn in order,
// then Final ends the turn.
type Scenario struct {
	// Name is the file's name without its extension; a file cannot set it.
	Name string `json:"-"`
	// Description is one line for people.
	Description string `json:"description"`
	Steps       []Step `json:"steps"`
	// Final is the last message; "" means the standard text, which repeats the
	// end of the last tool output. A scenario whose last step already ends the
	// turn has no final message.
	Final string `json:"final,omitempty"`
}

// ParseScenario reads a scenario file (JSON, at most 4 MiB and 1,000 steps).
// Unknown members, steps that can never run and numbers out of range are
// errors that name the step by its index.
func ParseScenario(data []byte) (*Scenario, error) {
	if len(data) > maxScenarioBytes {
		return nil, fmt.Errorf("scenario is %d bytes, at most %d are read", len(data), maxScenarioBytes)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var sc Scenario
	if err := dec.Decode(&sc); err != nil {
		return nil, fmt.Errorf("scenario is not valid: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("scenario is not valid: data follows the JSON object")
	}
	if err := sc.validate(); err != nil {
		return nil, err
	}
	return &sc, nil
}

func (sc *Scenario) validate() error {
	if len(sc.Steps) > maxScenarioSteps {
		return fmt.Errorf("scenario has %d steps, at most %d are allowed", len(sc.Steps), maxScenarioSteps)
	}
	ended := -1
	for i, step := range sc.Steps {
		if ended >= 0 {
			return fmt.Errorf("steps[%d] can never run: steps[%d] (%s) ends the turn", i, ended, sc.Steps[ended].kind())
		}
		if err := step.validate(); err != nil {
			return fmt.Errorf("steps[%d]: %w", i, err)
		}
		if !step.callsTool() {
			ended = i
		}
	}
	if ended >= 0 && sc.Final != "" {
		return fmt.Errorf("final can never be sent: steps[%d] (%s) ends the turn", ended, sc.Steps[ended].kind())
	}
	return nil
}

// LoadScenario finds a scenario by name among the built-in ones, or reads the
// file if nameOrFile holds a path separator or ends in ".json".
func LoadScenario(nameOrFile string) (*Scenario, error) {
	if !strings.ContainsAny(nameOrFile, `/\`) && !strings.HasSuffix(nameOrFile, ".json") {
		return builtinScenario(nameOrFile)
	}
	data, err := readScenarioFile(nameOrFile)
	if err != nil {
		return nil, err
	}
	sc, err := ParseScenario(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", nameOrFile, err)
	}
	sc.Name = strings.TrimSuffix(path.Base(strings.ReplaceAll(nameOrFile, `\`, "/")), ".json")
	return sc, nil
}

func readScenarioFile(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("scenario file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxScenarioBytes+1))
	if err != nil {
		return nil, fmt.Errorf("scenario file: %w", err)
	}
	return data, nil
}

func builtinScenario(name string) (*Scenario, error) {
	data, err := scenarioFiles.ReadFile("scenarios/" + name + ".json")
	if err != nil {
		return nil, fmt.Errorf("no scenario is named %q; known: %s (a file needs a path or .json)",
			name, strings.Join(scenarioNames(), ", "))
	}
	sc, err := ParseScenario(data)
	if err != nil {
		return nil, fmt.Errorf("built-in scenario %s: %w", name, err)
	}
	sc.Name = name
	return sc, nil
}

// Scenarios returns the built-in scenarios, sorted by name.
func Scenarios() ([]*Scenario, error) {
	var all []*Scenario
	for _, name := range scenarioNames() {
		sc, err := builtinScenario(name)
		if err != nil {
			return nil, err
		}
		all = append(all, sc)
	}
	return all, nil
}

func scenarioNames() []string {
	entries, err := scenarioFiles.ReadDir("scenarios")
	if err != nil {
		return nil // the directory is embedded at build time
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".json")
	}
	return names
}
