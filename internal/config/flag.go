package config

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// Group is a heading of the help text.
type Group string

const (
	GroupGeneral Group = "General"
	GroupCodex   Group = "Provider codex"
	GroupClaude  Group = "Provider claude"
	GroupBrowser Group = "Provider browser"
	GroupSandbox Group = "Sandbox"
	GroupServer  Group = "Server"
)

// Flag is one row of the table of flags.
type Flag struct {
	Name       string // as documented, without dashes; hyphen and underscore mean the same
	Short      string // one letter, or empty
	Value      string // placeholder of the value; empty: a switch
	Default    string // as shown; empty: none
	Env        string // environment variable that is read when the flag is absent; empty: none
	Repeatable bool
	Group      Group
	Help       string

	initial      string   // default that the parser applies; empty: left to finish
	emptyInitial bool     // an empty value means the default
	only         Provider // the variable is read for this provider alone; empty: for all
	emptyEnv     bool     // an empty variable is a value like any other, not "unset"
	late         bool     // the value is judged after the provider, not at its place in argv
	subject      string   // what an error names in place of the flag or the variable
	action       Action   // ends the parsing, unless it is ActionServe
	set          func(o *Options, value string) error
	split        func(value string) ([]string, error) // of a repeatable flag's variable
}

// Flags returns every flag in the order of the help text.
func Flags() []Flag { return slices.Clone(table) }

// Names returns every documented spelling on the command line, with dashes:
// what a document that claims to list all flags must contain.
func Names() []string {
	var names []string
	for _, f := range table {
		names = append(names, "--"+f.Name)
		if f.Short != "" {
			names = append(names, "-"+f.Short)
		}
	}
	return names
}

// EnvNames returns every documented environment variable of a flag.
func EnvNames() []string {
	var names []string
	for _, f := range table {
		if f.Env != "" {
			names = append(names, f.Env)
		}
	}
	return names
}

var (
	table = buildTable()
	index = indexTable(table)
)

// indexTable maps the folded names to rows, and panics on a name given twice:
// the table is a constant of the program, so a test run finds that.
func indexTable(flags []Flag) map[string]int {
	m := make(map[string]int, len(flags))
	for i, f := range flags {
		if _, twice := m[fold(f.Name)]; twice {
			panic("options: flag declared twice: " + f.Name)
		}
		m[fold(f.Name)] = i
	}
	return m
}

// fold makes hyphen and underscore the same.
func fold(name string) string { return strings.ReplaceAll(name, "-", "_") }

// withEnv completes the rows of flags that can also be set as
// MCP_AGENTS_<NAME IN CAPITALS>. Unless a row says emptyEnv, an empty variable
// is unset, so that a compose file may write MCP_AGENTS_IMAGE=${IMAGE:-}.
func withEnv(flags ...Flag) []Flag {
	for i := range flags {
		flags[i].Env = "MCP_AGENTS_" + strings.ToUpper(fold(flags[i].Name))
	}
	return flags
}

// shown completes the rows whose shown default is the one that is applied.
func shown(flags []Flag) []Flag {
	for i := range flags {
		if flags[i].Default == "" {
			flags[i].Default = flags[i].initial
		}
	}
	return flags
}

// into makes a setter from a reader of values and the field that it fills.
func into[T any](read func(string) (T, error), field func(*Options) *T) func(*Options, string) error {
	return func(o *Options, value string) error {
		v, err := read(value)
		if err == nil {
			*field(o) = v
		}
		return err
	}
}

// appending is into for repeatable flags.
func appending(read func(string) (string, error), field func(*Options) *[]string) func(*Options, string) error {
	return func(o *Options, value string) error {
		v, err := read(value)
		if err == nil {
			*field(o) = append(*field(o), v)
		}
		return err
	}
}

func anything(s string) (string, error) { return s, nil }

func nonBlankOrNone(s string) (string, error) {
	if blank(s) {
		return "", nil
	}
	return s, nil
}

func oneOf[T ~string](values ...T) func(string) (T, error) {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = string(v)
	}
	problem := errors.New("must be " + strings.Join(names, " or "))
	return func(s string) (T, error) {
		if !slices.Contains(values, T(s)) {
			return "", problem
		}
		return T(s), nil
	}
}

func bounded(low, high int64) func(string) (int64, error) {
	return func(s string) (int64, error) { return integer(s, low, high) }
}

func sized(low, high int64) func(string) (int64, error) {
	return func(s string) (int64, error) { return size(s, low, high) }
}

func atMostMaxTimer(s string) (time.Duration, error) {
	d, err := seconds(s)
	return min(d, MaxTimer), err
}
