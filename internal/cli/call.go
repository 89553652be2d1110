package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/containerd/console"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mcpagents/internal/app"
	"mcpagents/internal/call"
	"mcpagents/internal/config"
	"mcpagents/internal/mcp/stdio"
	"mcpagents/internal/sandbox/docker"
)

// maxDeadline bounds --deadline, in seconds: ten days.
const maxDeadline = 864_000

func callCommand(status *int) *cobra.Command {
	var o call.Options
	var deadline float64
	cmd := &cobra.Command{
		Use: "call TOOL", Short: "run one tool call without an MCP client, for pipelines", Args: cobra.ExactArgs(1),
		Example: "  mcp-agents call --provider codex codex --arg prompt=@task.md --arg cwd=. --arg sandbox=read-only",
		Long: "Starts the server, calls one tool, prints its text and ends everything again. Progress goes to stderr.\n" +
			"Every flag of the server (mcp-agents --help) can be given here as well.\n\n" +
			"Exit status: 0, 1 for an error of the tool, 2 for a mistake in the command line, 124 when the deadline passed,\n" +
			"143 after SIGTERM, 130 after SIGINT.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !(deadline >= 0 && deadline <= maxDeadline) {
				return fmt.Errorf("--deadline must be a number of seconds from 0 to %d", maxDeadline)
			}
			o.Tool, o.Deadline = args[0], time.Duration(deadline*float64(time.Second))
			return runCall(cmd.Context(), o, status)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.Args, "arg", nil, "an argument `KEY=VALUE`, typed as the tool declares it; @FILE is a file's content, @- that of stdin")
	flags.StringArrayVar(&o.JSONArgs, "arg-json", nil, "an argument `KEY=JSON`")
	flags.BoolVar(&o.JSON, "json", false, "print the whole result as JSON")
	flags.Float64Var(&deadline, "deadline", 0, "cancel the call after `SECONDS`; 0 means never")
	flags.StringVar(&o.OutDir, "out", "", "put diff.patch (what changed in cwd's git work tree), result.json and call.log into `DIR`")
	flags.StringVar(&o.Scripted, "scripted", "", "let the scripted model answer, by the scenario in `FILE`, or by a built-in one of that name")
	flags.SortFlags = false
	passServerFlags(flags, &o.Server)
	return cmd
}

// passServerFlags lets a subcommand take every flag of the server, hyphens and
// underscores alike, and collects them for the server in their order.
func passServerFlags(flags *pflag.FlagSet, to *[]string) {
	fold := strings.NewReplacer("-", "_")
	names := make(map[string]string)
	for _, f := range config.Flags() {
		names[fold.Replace(f.Name)] = f.Name
	}
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if known, ok := names[fold.Replace(name)]; ok {
			name = known
		}
		return pflag.NormalizedName(name)
	})
	for _, f := range config.Flags() {
		if f.Name == "help" || f.Name == "version" {
			continue
		}
		flag := flags.VarPF(&passed{name: f.Name, toggle: f.Value == "", to: to}, f.Name, "", f.Help)
		flag.Hidden = true
		if f.Value == "" {
			flag.NoOptDefVal = "true"
		}
	}
}

// passed is a flag of the server, which judges its value.
type passed struct {
	name   string
	toggle bool
	to     *[]string
}

func (p *passed) String() string { return "" }
func (p *passed) Type() string   { return "value" }

func (p *passed) Set(value string) error {
	flag := "--" + p.name
	if !p.toggle || value != "true" {
		flag += "=" + value
	}
	*p.to = append(*p.to, flag)
	return nil
}

func runCall(ctx context.Context, o call.Options, status *int) (err error) {
	server, err := config.Parse(o.Server, os.LookupEnv)
	if err != nil {
		return err
	}
	if o.Dir, err = os.Getwd(); err != nil {
		return fmt.Errorf("find the working directory: %w", err)
	}
	if o.Binary, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	o.Provider, o.StopGrace = string(server.Provider), server.Sandbox.StopGrace
	if o.Scripted != "" {
		if err := scriptCall(&o, server); err != nil {
			return err
		}
		if c, ok := o.Runtime.(io.Closer); ok {
			defer func() { err = errors.Join(err, c.Close()) }()
		}
	}
	o.Stdin, o.Stdout, o.Stderr, o.Width = os.Stdin, os.Stdout, os.Stderr, terminalWidth(os.Stderr)
	*status = call.Run(ctx, o)
	if sig, ok := errors.AsType[stdio.Signal](context.Cause(ctx)); ok && *status == call.StatusInterrupted {
		*status = sig.Status()
	}
	return nil
}

// scriptCall adds what the scripted model runs in.
func scriptCall(o *call.Options, server config.Options) (err error) {
	if server.Sandbox.ModelBaseURL != "" || slices.ContainsFunc(o.Server, func(f string) bool { return strings.HasPrefix(f, "--network=") }) {
		return errors.New("--scripted brings its own model and network: leave --model_base_url and --network out")
	}
	if o.Image = server.Sandbox.Image; o.Image == "" {
		o.Image = docker.DefaultImage(string(server.Provider))
	}
	o.Runtime, err = app.RuntimeByName(string(server.Sandbox.Runtime), server.Sandbox.DockerHost)
	if rt, ok := o.Runtime.(*docker.Runtime); ok {
		rt.RunsIn(server.Sandbox.SelfContainer)
	}
	return err
}

// terminalWidth is the number of columns of a terminal, and 0 for anything else.
func terminalWidth(f *os.File) int {
	c, err := console.ConsoleFromFile(f)
	if err != nil {
		return 0
	}
	size, err := c.Size()
	if err != nil || size.Width == 0 {
		return 80
	}
	return int(size.Width)
}
