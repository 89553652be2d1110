package call

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxInput bounds a file or stdin that becomes an argument, in bytes: a message
// to a server may have 16 MiB.
const maxInput = 8 << 20

// argument is an argument as it was given: text that its type is still to be
// found for, or with isJSON a value.
type argument struct {
	key    string
	text   string
	value  any
	isJSON bool
}

// parseArgs reads the arguments. A relative cwd is one below the directory of
// the call: a tool takes absolute paths only.
func parseArgs(o Options) ([]argument, error) {
	var list []argument
	add := func(a argument) error {
		if slices.ContainsFunc(list, func(b argument) bool { return a.key == b.key }) {
			return usagef("the argument %q is given twice", a.key)
		}
		list = append(list, a)
		return nil
	}
	stdin := o.Stdin
	for _, arg := range o.Args {
		key, text, ok := strings.Cut(arg, "=")
		if !ok || key == "" {
			return nil, usagef("--arg takes KEY=VALUE")
		}
		if name, ok := strings.CutPrefix(text, "@"); ok {
			if name == "-" && stdin == nil {
				return nil, usagef("@- is given twice: stdin can be read only once")
			}
			var err error
			if text, err = readInput(name, stdin); err != nil {
				return nil, usagef("--arg %s: %v", key, err)
			}
			if name == "-" {
				stdin = nil
			}
		}
		if key == "cwd" {
			text = absolute(o.Dir, text)
		}
		if err := add(argument{key: key, text: text}); err != nil {
			return nil, err
		}
	}
	for _, arg := range o.JSONArgs {
		key, text, ok := strings.Cut(arg, "=")
		if !ok || key == "" {
			return nil, usagef("--arg-json takes KEY=JSON")
		}
		a := argument{key: key, isJSON: true}
		if err := json.Unmarshal([]byte(text), &a.value); err != nil {
			return nil, usagef("--arg-json %s: the value is not JSON: %v", key, err)
		}
		if dir, ok := a.value.(string); ok && key == "cwd" {
			a.value = absolute(o.Dir, dir)
		}
		if err := add(a); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// readInput reads a file, or stdin for "-".
func readInput(name string, stdin io.Reader) (string, error) {
	r := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return "", err
		}
		defer f.Close()
		r = f
	}
	b, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return "", err
	}
	if len(b) > maxInput {
		return "", fmt.Errorf("%s is over %d MiB", name, maxInput>>20)
	}
	return string(b), nil
}

// schema is as much of a tool's input schema as types an argument.
type schema struct {
	Properties map[string]property `json:"properties"`
	Required   []string            `json:"required"`
	Additional any                 `json:"additionalProperties"`
}

type property struct {
	Type any `json:"type"` // a name, or a list of names
}

// kind is the type of a property, "" where the schema does not tell.
func (p property) kind() string {
	switch t := p.Type.(type) {
	case string:
		return t
	case []any:
		for _, x := range t {
			if s, ok := x.(string); ok && s != "null" {
				return s
			}
		}
	}
	return ""
}

// typed makes the arguments of a tool from what was given. What the server would
// refuse for certain is refused here, as a mistake of usage.
func typed(name string, tools []*mcp.Tool, args []argument) (map[string]any, error) {
	i := slices.IndexFunc(tools, func(t *mcp.Tool) bool { return t.Name == name })
	if i < 0 {
		var names []string
		for _, t := range tools {
			names = append(names, t.Name)
		}
		return nil, usagef("there is no tool %q: use one of %s", name, strings.Join(names, ", "))
	}
	var s schema
	b, err := json.Marshal(tools[i].InputSchema)
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		return nil, fmt.Errorf("read the schema of %s: %w", name, err)
	}
	out := make(map[string]any, len(args))
	for _, a := range args {
		p, known := s.Properties[a.key]
		if !known && s.Additional == false {
			return nil, usagef("%s has no argument %q: it has %s", name, a.key, strings.Join(slices.Sorted(maps.Keys(s.Properties)), ", "))
		}
		if out[a.key] = a.value; !a.isJSON {
			if out[a.key], err = convert(a.text, p.kind()); err != nil {
				return nil, usagef("the argument %q of %s %v", a.key, name, err)
			}
		}
	}
	for _, key := range s.Required {
		if _, ok := out[key]; !ok {
			return nil, usagef("%s requires the argument %q", name, key)
		}
	}
	return out, nil
}

// convert turns text into a value of the schema's type. An error is the rest of
// a sentence about the argument, and does not repeat its value.
func convert(text, kind string) (any, error) {
	switch kind {
	case "boolean":
		if text != "true" && text != "false" {
			return nil, fmt.Errorf("must be true or false")
		}
		return text == "true", nil
	case "integer":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("must be an integer")
		}
		return n, nil
	case "number":
		var n json.Number
		if json.Unmarshal([]byte(text), &n) != nil || n == "" || text[0] == '"' {
			return nil, fmt.Errorf("must be a number")
		}
		return n, nil
	case "object", "array":
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			return nil, fmt.Errorf("must be JSON (an %s)", kind)
		}
		return v, nil
	}
	return text, nil
}
