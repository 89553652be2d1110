package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"mcpagents/internal/config"
	"mcpagents/internal/credentials"
	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/wire"
	"mcpagents/internal/terminal"
	"mcpagents/internal/trust"
)

// openLogin bounds the start of the sandbox for a login.
const openLogin = time.Minute

// CLILogin is how a CLI logs in where no browser of this machine reaches it.
type CLILogin struct {
	source   func(dir string) credentials.Source
	argv     []string // without the arguments
	args     []string // where the user gives none
	filesDir string
	variable string // names the directory of the login to the CLI
}

var cliLogins = map[config.Provider]CLILogin{
	config.ProviderCodex:  {credentials.Codex, []string{"codex", "login"}, []string{"--device-auth"}, ".codex", "CODEX_HOME"},
	config.ProviderClaude: {credentials.Claude, []string{"claude", "auth", "login"}, nil, ".claude", "CLAUDE_CONFIG_DIR"},
}

// LoginOf is how the CLI of the provider logs in, with the user's arguments
// where there are any.
func LoginOf(opts config.Options, args []string) (CLILogin, error) {
	how, ok := cliLogins[opts.Provider]
	if !ok || opts.Sandbox.Runtime == config.RuntimeLocal {
		return CLILogin{}, errors.New("login is for provider codex or claude in a container: otherwise use the CLI's own")
	}
	if len(args) > 0 {
		how.args = args
	}
	return how, nil
}

// Login runs the CLI's login on the terminal of this process and stores what it
// left. The status is the CLI's.
func Login(ctx context.Context, opts config.Options, how CLILogin, log *slog.Logger) (status int, err error) {
	rt, err := RuntimeByName(string(opts.Sandbox.Runtime), opts.Sandbox.DockerHost)
	if err != nil {
		return 0, err
	}
	if c, ok := rt.(io.Closer); ok {
		defer c.Close()
	}
	spec := sandboxSpec(opts, "")
	spec.FilesDir = how.filesDir
	if spec.User == "" && os.Geteuid() == 0 {
		spec.User = "1000:1000" // there is no workspace whose owner it could be
	}
	var authorities *trust.Authorities
	if opts.Sandbox.CAFile != "" {
		if authorities, err = trust.Load(opts.Sandbox.CAFile); err != nil {
			return 0, fmt.Errorf("--ca_file: %w", err)
		}
		spec.Mounts = append(spec.Mounts, authorities.Mount())
	}
	opening, cancel := context.WithTimeout(ctx, openLogin)
	defer cancel()
	box, err := sandbox.Open(opening, rt, spec, log)
	if err != nil {
		return 0, err
	}
	defer func() {
		leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), opts.Sandbox.StopGrace+leaveTime)
		defer cancel()
		err = errors.Join(err, box.Close(leaving))
	}()
	env, err := how.prepare(opening, box, rt.Environ(spec), authorities)
	if err != nil {
		return 0, err
	}
	user := terminal.Standard()
	size := user.Size()
	proc, err := box.Spawn(opening, sandbox.Command{Argv: append(how.argv, how.args...), Env: env, Dir: "/", Stdin: true, PTY: size})
	if err != nil {
		return 0, err
	}
	if status, err = terminal.Attach(ctx, proc, user, size != nil); err != nil || status != 0 {
		return status, err
	}
	return 0, keepLogin(ctx, box, how.source(opts.Sandbox.AuthSource))
}

// prepare makes the directory of the login, since no file makes it, and returns
// the CLI's environment.
func (how CLILogin) prepare(ctx context.Context, box *sandbox.Sandbox, env []string, authorities *trust.Authorities) ([]string, error) {
	dir := box.Welcome().FilesDir
	out, err := box.Run(ctx, sandbox.Command{Argv: []string{"mkdir", "-p", "-m", "0700", dir}, Env: env, Dir: "/"})
	if err == nil && out.Exit.Code != 0 {
		err = errors.New(string(out.Stderr))
	}
	if err != nil {
		return nil, fmt.Errorf("make the login's directory in the sandbox: %w", err)
	}
	if authorities != nil {
		if err := authorities.Install(ctx, box, env); err != nil {
			return nil, err
		}
		env = append(env, authorities.Environ(box.Welcome().Home)...)
	}
	return append(env, how.variable+"="+dir), nil
}

// keepLogin stores the login that is in the sandbox.
func keepLogin(ctx context.Context, box *sandbox.Sandbox, source credentials.Source) error {
	files, err := box.Collect(ctx, source.Credential)
	if err != nil {
		return err
	}
	if len(files) != 1 || files[0].State != wire.FilePresent {
		return errors.New("the CLI ended well and left no login: nothing was stored")
	}
	if err := credentials.Store(ctx, source, files[0].Data); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s: the login is stored; servers that run take it with their next sandbox\n", source.Name)
	return nil
}
