package config

import (
	"os"
	"path/filepath"
	"strings"
)

// Parse reads the server's command line without the program's name. env looks
// up an environment variable, as os.LookupEnv does.
//
// Arguments are read from left to right and the first problem wins; --help and
// --version end the reading at their place. "--flag value" and "--flag=value"
// are the same; a value is taken as it is, even if it begins with "--". A later
// repetition replaces an earlier one, unless the flag is repeatable. A flag
// wins over its environment variable, which wins over the default. Every error
// is a *[UsageError].
func Parse(argv []string, env func(string) (string, bool)) (Options, error) {
	p := parser{given: make(map[string]string)}
	if err := p.defaults(); err != nil {
		return Options{}, err
	}
	if err := p.arguments(argv); err != nil {
		return Options{}, err
	}
	if p.o.Action != ActionServe {
		return p.o, nil
	}
	if err := p.provider(); err != nil {
		return Options{}, err
	}
	for i := range table {
		if err := p.complete(&table[i], env); err != nil {
			return Options{}, err
		}
	}
	if err := p.finish(env); err != nil {
		return Options{}, err
	}
	return p.o, nil
}

type parser struct {
	o       Options
	given   map[string]string // last value on the command line, by flag
	browser string            // the first browser flag on the command line
}

// defaults applies the table's own defaults through the same readers as a
// user's values; a wrong one is a mistake in the table that every run shows.
func (p *parser) defaults() error {
	for i := range table {
		if f := &table[i]; f.initial != "" {
			if err := f.apply(&p.o, "--"+f.Name, f.initial); err != nil {
				return err
			}
		}
	}
	p.o.Codex.Timeout = defaultCodexTimeout
	p.o.Claude.Timeout = defaultClaudeTimeout
	p.o.Claude.JobTimeout = defaultClaudeJobTimeout
	p.o.Browser.Timeout = defaultBrowserTimeout
	p.o.Gemini.Timeout = defaultGeminiTimeout
	return nil
}

func (p *parser) arguments(argv []string) error {
	for len(argv) > 0 {
		f, value, inline := lookup(argv[0])
		if f == nil {
			name, _, _ := strings.Cut(argv[0], "=") // what follows may be a secret
			return usagef("unknown option: %s", oneLine(name))
		}
		argv = argv[1:]
		switch {
		case f.action != ActionServe && inline:
			return usagef("--%s takes no value", f.Name)
		case f.action != ActionServe:
			p.o.Action = f.action
			return nil
		case f.Value == "" && !inline:
			value = "true"
		case !inline && len(argv) == 0:
			return usagef("--%s requires a value", f.Name)
		case !inline:
			value, argv = argv[0], argv[1:]
		}
		if err := p.take(f, value); err != nil {
			return err
		}
	}
	return nil
}

// lookup finds the flag of an argument and the value behind its "=". Nothing
// but a whole name matches: abbreviations would change meaning with each new
// flag.
func lookup(arg string) (f *Flag, value string, inline bool) {
	if long, ok := strings.CutPrefix(arg, "--"); ok {
		long, value, inline = strings.Cut(long, "=")
		if i, known := index[fold(long)]; known {
			return &table[i], value, inline
		}
		return nil, "", false
	}
	for i := range table {
		if s := table[i].Short; s != "" && arg == "-"+s {
			return &table[i], "", false
		}
	}
	return nil, "", false
}

func (p *parser) take(f *Flag, value string) error {
	p.given[f.Name] = value
	if f.Group == GroupBrowser && p.browser == "" {
		p.browser = f.Name
	}
	if f.late {
		return nil
	}
	return f.apply(&p.o, "--"+f.Name, value)
}

func (p *parser) provider() error {
	if p.browser != "" && p.o.Provider != ProviderBrowser {
		return usagef("--%s is only valid with --provider browser", p.browser)
	}
	for _, known := range Providers() {
		if p.o.Provider == known {
			if _, given := p.given["warm"]; !given && known == ProviderClaude {
				p.o.Sandbox.Warm = defaultClaudeWarm
			}
			return nil
		}
	}
	return unknownProvider(string(p.o.Provider))
}

// complete judges what had to wait for the provider, and reads the variable
// of a flag that was not given.
func (p *parser) complete(f *Flag, env func(string) (string, bool)) error {
	if value, given := p.given[f.Name]; given {
		if f.late {
			return f.apply(&p.o, "--"+f.Name, value)
		}
		return nil
	}
	if f.Env == "" || (f.only != "" && f.only != p.o.Provider) {
		return nil
	}
	value, found := env(f.Env)
	if !found || (value == "" && !f.emptyEnv) {
		return nil
	}
	values := []string{value}
	if f.split != nil {
		var err error
		if values, err = f.split(value); err != nil {
			return f.problem(f.Env, err)
		}
	}
	for _, v := range values {
		if err := f.apply(&p.o, f.Env, v); err != nil {
			return err
		}
	}
	return nil
}

// apply sets the value; source names where it came from.
func (f *Flag) apply(o *Options, source, value string) error {
	if value == "" && f.emptyInitial {
		value = f.initial
	}
	if err := f.set(o, value); err != nil {
		return f.problem(source, err)
	}
	return nil
}

func (f *Flag) problem(source string, err error) error {
	if f.subject != "" {
		source = f.subject
	}
	return usagef("%s %s", source, err)
}

// finish fills what depends on more than one flag.
func (p *parser) finish(env func(string) (string, bool)) error {
	o := &p.o
	if o.Codex.Model == "" {
		o.Codex.Model = o.Codex.Models[0]
	}
	o.Codex.Home = codexHome(env)
	p.tunables(env)
	if o.Provider == ProviderBrowser && o.Sandbox.Runtime == RuntimeLocal && o.Browser.LeaseCommand == nil {
		return usagef("--browser_lease_command or MCP_AGENTS_BROWSER_LEASE_COMMAND is required " +
			"with --runtime local")
	}
	return nil
}

func codexHome(env func(string) (string, bool)) string {
	if dir, _ := env("CODEX_HOME"); dir != "" {
		return dir
	}
	if home, _ := env("HOME"); home != "" {
		return filepath.Join(home, ".codex")
	}
	return filepath.Join(os.TempDir(), ".codex")
}
