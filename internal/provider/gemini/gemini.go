// Package gemini offers Google's agy (Antigravity) as an MCP tool that waits
// for its answer. Each call has a sandbox of its own that sees no workspace.
package gemini

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"mcpagents/internal/mcp/toolserver"
	"mcpagents/internal/provider/oneshot"
)

const (
	// DefaultTimeout is the time of a call that names none.
	DefaultTimeout = 300 * time.Second
	// DefaultMaxChars is the longest answer, in code points.
	DefaultMaxChars = 40_000

	program = "agy"
	// tempPrefix begins the name of the directory that a call works in.
	tempPrefix = "mcp-agents-gemini-"
)

// KeyVariables are environment variables that log agy in.
var KeyVariables = []string{"ANTIGRAVITY_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"}

// tokenFile is where agy keeps its token when there is no keyring, in its
// directory below the home.
const tokenFile = "antigravity-oauth-token"

// Config is what a Provider needs. Launcher is required.
type Config struct {
	Launcher *oneshot.Launcher
	// NeedLogin refuses a call without a login, before a sandbox is made. Env
	// names further variables that may hold one.
	NeedLogin bool
	Env       []string
	// AuthSource is the directory of the token file; empty means agy's own.
	AuthSource string

	Timeout  time.Duration // of a call
	MaxChars int           // of an answer, in code points
	// LoginPatience is how long an agy that asked for a login may wait; 0
	// means oneshot.LoginPatience.
	LoginPatience time.Duration
	Log           *slog.Logger // nil means slog.Default
}

// Provider is the tools of agy.
type Provider struct {
	cfg Config
	log *slog.Logger
}

// New returns a Provider.
func New(cfg Config) *Provider {
	cfg.Timeout = cmp.Or(cfg.Timeout, DefaultTimeout)
	cfg.MaxChars = cmp.Or(cfg.MaxChars, DefaultMaxChars)
	cfg.LoginPatience = cmp.Or(cfg.LoginPatience, oneshot.LoginPatience)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	return &Provider{cfg, cfg.Log}
}

// Tools are the tools in the order in which they are listed.
func (p *Provider) Tools() []toolserver.Tool {
	return []toolserver.Tool{toolserver.PingTool(), {
		Name: "gemini",
		Description: "Runs Google's Antigravity CLI, always as agy --sandbox, with a prompt in a sandbox of its own that sees no workspace, " +
			"and returns the answer. Takes prompt and timeout_ms only.",
		InputSchema: oneshot.Schema(program, p.cfg.Timeout),
		Call:        p.call,
		Heartbeat: func(elapsed time.Duration) string {
			return fmt.Sprintf("Gemini: still running (%ds)", int(elapsed/time.Second))
		},
	}}
}

func failure(text string) toolserver.Result { return toolserver.Result{Text: text, IsError: true} }

// call runs agy and waits for its answer.
func (p *Provider) call(ctx context.Context, call toolserver.Call) (toolserver.Result, error) {
	a := oneshot.ParseArguments(call.Arguments, p.cfg.Timeout)
	if len(a.Ignored) > 0 {
		p.log.Info("tools/call: ignoring unsupported args: " + strings.Join(a.Ignored, ", "))
	}
	switch {
	case strings.TrimSpace(a.Prompt) == "":
		return failure("Missing required argument: prompt"), nil
	case a.Timeout <= 0:
		p.log.Warn("tools/call: timeout budget exhausted", "provider", "gemini", "timeout_ms", a.Timeout.Milliseconds())
		return failure(program + " failed: timeout budget exhausted before retry"), nil
	case len(a.Prompt) > maxArgument:
		return failure(fmt.Sprintf("%s takes its prompt as an argument, which the system limits to %d bytes: shorten it", program, maxArgument)), nil
	}
	token, err := p.login()
	if err != nil {
		return failure(err.Error()), nil
	}
	p.log.Info("tools/call: running " + program + " …")
	ctx, cancel := context.WithTimeoutCause(ctx, a.Timeout, oneshot.ErrTimeout)
	defer cancel()
	out, err := p.cfg.Launcher.Run(ctx, oneshot.Command{Argv: p.argv(a.Prompt, token), NoInput: true, TempPrefix: tempPrefix,
		Env: p.environ(token), LoginPatience: p.cfg.LoginPatience}, "")
	if err != nil {
		text, err := oneshot.StartFailure(ctx, program, err)
		return failure(text), err
	}
	p.log.Info("tools/call: done")
	return p.judge(out, a.Timeout), nil
}

// maxArgument is Linux's limit of one argument, less its end.
const maxArgument = 128<<10 - 1

// tokenVariable carries the user's token to where agy looks for it.
const tokenVariable = "MCP_AGENTS_AGY_TOKEN"

// argv is agy's command line. With a token, a shell puts that where agy looks
// for it and becomes agy, which never sees the variable.
func (p *Provider) argv(prompt, token string) []string {
	argv := []string{program, "--sandbox", "-p", prompt}
	if token == "" {
		return argv
	}
	const put = `umask 077; d="$HOME/.gemini/antigravity-cli"; mkdir -p "$d" && printf %s "$` + tokenVariable +
		`" >"$d/antigravity-oauth-token"; unset ` + tokenVariable + `; exec "$@"`
	return append([]string{"sh", "-c", put, "sh"}, argv...)
}

func (p *Provider) environ(token string) func(string) []string {
	return func(string) []string {
		var env []string
		for _, name := range KeyVariables {
			if v := os.Getenv(name); v != "" {
				env = append(env, name+"="+v)
			}
		}
		if token != "" {
			env = append(env, tokenVariable+"="+token)
		}
		return env
	}
}

// maxToken bounds a token file, in bytes.
const maxToken = 64 << 10

// login returns the user's token, if there is one and it is needed, or says
// which login is missing and what to do.
func (p *Provider) login() (token string, err error) {
	if !p.cfg.NeedLogin {
		return "", nil // the local runtime: agy finds its keyring itself
	}
	for _, name := range KeyVariables {
		if strings.TrimSpace(os.Getenv(name)) != "" {
			return "", nil
		}
	}
	if token, err = p.token(); err == nil {
		return token, nil
	}
	for _, name := range p.cfg.Env {
		if keyName.MatchString(name) && strings.TrimSpace(os.Getenv(name)) != "" {
			return "", nil
		}
	}
	return "", err
}

// keyName tells variables that may hold a login from others.
var keyName = regexp.MustCompile(`(?i)key|token|credential|secret`)

// token reads the user's token file.
func (p *Provider) token() (string, error) {
	path, err := p.tokenPath()
	if err != nil {
		return "", missing("no home directory is known")
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", missing(path + " does not exist")
	case err != nil:
		return "", missing(err.Error())
	case !info.Mode().IsRegular():
		return "", missing(path + " is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", missing(err.Error())
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	switch {
	case err != nil:
		return "", missing(err.Error())
	case len(data) > maxToken || bytes.IndexByte(data, 0) >= 0:
		return "", missing(path + " holds no token")
	case len(bytes.TrimSpace(data)) == 0:
		return "", missing(path + " is empty")
	}
	return string(data), nil
}

func (p *Provider) tokenPath() (string, error) {
	if p.cfg.AuthSource != "" {
		return filepath.Join(p.cfg.AuthSource, tokenFile), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".gemini", "antigravity-cli", tokenFile), err
}

func missing(reason string) error {
	return fmt.Errorf("agy login is missing: %s; set %s, or name a variable that holds a key with --env; a login in the system's keyring "+
		"cannot be taken into a container: use --runtime local for that one", reason, strings.Join(KeyVariables, ", "))
}

// judge makes the answer of what agy left: how it ended counts, then whether it
// said anything. agy exits 0 with no word in some failures.
func (p *Provider) judge(out oneshot.Output, budget time.Duration) toolserver.Result {
	if failed := out.Failure(program, budget); failed != "" {
		return failure(failed)
	}
	answer := out.Text()
	if strings.TrimSpace(answer) == "" {
		return failure(program + " returned empty output (exit 0): it printed no answer, as it does when it is not logged in or wants a terminal")
	}
	short, chars := oneshot.Cut(answer, p.cfg.MaxChars)
	if chars > p.cfg.MaxChars {
		short += fmt.Sprintf("\n\n[mcp-agents: this answer has %d characters and is cut after %d. Ask for the rest, or for a shorter answer; "+
			"--max_result_chars is the limit.]", chars, p.cfg.MaxChars)
	}
	return toolserver.Result{Text: short}
}
