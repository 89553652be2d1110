// Package demo shows the main jobs to a newcomer, with no credentials and no
// network. The real Codex CLI, in a disposable sandbox, changes a file of a fresh
// workspace at the word of the scripted model. A real Chromium in a container
// opens a page of this machine, at the calls of a client. Nothing is left
// afterwards but a screenshot.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/docker"
	"mcpagents/internal/sandbox/local"
	"mcpagents/internal/scripted"
)

// limit bounds the whole demo.
const limit = 3 * time.Minute

// demo is one run.
type demo struct {
	out      io.Writer
	begin    time.Time
	stages   []stage
	runtime  string
	rt       sandbox.Runtime
	self     string // this binary
	dir      string // everything the demo makes
	owner    int    // uid of the workspace, also the gid
	frontEnd int    // pid of mcp-agents
}

type stage struct {
	name string
	took time.Duration
}

// Run runs the demo of Codex on the docker runtime, or on the one that is
// named, and returns the exit status. Its last line is "demo: ok" or
// "demo: failed: …".
func Run(ctx context.Context, out io.Writer, runtime string) int {
	d := &demo{out: out, begin: time.Now(), runtime: runtime}
	return d.show(ctx, d.run)
}

// RunBrowser runs the demo of the browser, as Run does, on the docker runtime.
func RunBrowser(ctx context.Context, out io.Writer) int {
	d := &demo{out: out, begin: time.Now(), runtime: "docker"}
	return d.show(ctx, d.runBrowser)
}

// show runs a demo and prints its last line.
func (d *demo) show(ctx context.Context, run func(context.Context) error) int {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintf(d.out, "demo: failed: %v\n", err)
		return 1
	}
	fmt.Fprintln(d.out, "demo: ok")
	return 0
}

func (d *demo) run(ctx context.Context) (err error) {
	if err := d.setUp(); err != nil {
		return err
	}
	defer func() {
		if rmErr := os.RemoveAll(d.dir); rmErr != nil {
			err = errors.Join(err, rmErr)
		}
	}()
	if err := d.makeWorkspace(ctx); err != nil {
		return fmt.Errorf("make a workspace: %w", err)
	}
	model, err := d.startModel(ctx)
	if err != nil {
		return err
	}
	turnErr := d.turn(ctx, model)
	if err := errors.Join(turnErr, model.Close(ctx)); err != nil {
		return err
	}
	if err := d.checkWorkspace(ctx); err != nil {
		return err
	}
	if err := d.checkNothingLeft(ctx); err != nil {
		return err
	}
	d.printTimes()
	return nil
}

func (d *demo) setUp() (err error) {
	switch d.runtime {
	case "", "docker":
		d.runtime = "docker"
		d.rt, err = docker.New("")
	case "local":
		d.rt, err = local.New()
		d.say("no engine: the local runtime isolates no file system")
	default:
		return fmt.Errorf("unknown runtime %q: use docker or local", d.runtime)
	}
	if err != nil {
		return err
	}
	if d.self, err = os.Executable(); err != nil {
		return err
	}
	if d.dir, err = os.MkdirTemp("", "mcp-agents-demo-"); err != nil {
		return err
	}
	if d.owner = os.Getuid(); d.owner == 0 && d.runtime == "docker" {
		d.owner = 1000 // a workspace as most users have it
	}
	return os.Chmod(d.dir, 0o755)
}

// say prints a line with the time since the begin.
func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.out, "%6.2fs  %s\n", time.Since(d.begin).Seconds(), fmt.Sprintf(format, args...))
}

// stage starts a stage; the returned function ends it.
func (d *demo) stage(name string) func() {
	d.say("%s", name)
	begin := time.Now()
	return func() { d.stages = append(d.stages, stage{name, time.Since(begin)}) }
}

func (d *demo) printTimes() {
	fmt.Fprintln(d.out, "\nTimes:")
	for _, s := range d.stages {
		fmt.Fprintf(d.out, "  %7.0f ms  %s\n", float64(s.took.Microseconds())/1000, s.name)
	}
	fmt.Fprintf(d.out, "  %7.0f ms  in all\n\n", float64(time.Since(d.begin).Microseconds())/1000)
}

func (d *demo) workspace() string { return filepath.Join(d.dir, "workspace") }
func (d *demo) loginDir() string  { return filepath.Join(d.dir, "login") }

// startModel serves the scripted model to the sandbox that Codex will have.
func (d *demo) startModel(ctx context.Context) (*scripted.Model, error) {
	defer d.stage("starting the scripted model")()
	return scripted.Start(ctx, scripted.Options{Runtime: d.rt, Image: docker.DefaultImage("codex"), Scenario: "demo", Binary: d.self})
}

func (d *demo) makeWorkspace(ctx context.Context) error {
	defer d.stage("making a git workspace and a login with a made-up key")()
	ws := d.workspace()
	if err := errors.Join(os.Mkdir(ws, 0o755), os.Mkdir(d.loginDir(), 0o700)); err != nil {
		return err
	}
	err := errors.Join(
		writeFile(filepath.Join(ws, "greeting.txt"), "Hello from the host.\n", 0o644),
		writeFile(filepath.Join(d.loginDir(), "auth.json"), `{"OPENAI_API_KEY":"made-up"}`, 0o600))
	if err != nil {
		return err
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-qm", "start"}} {
		if _, err := d.git(ctx, args...); err != nil {
			return err
		}
	}
	if d.owner == os.Getuid() {
		return nil
	}
	return filepath.WalkDir(ws, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, d.owner, d.owner))
	})
}

func writeFile(path, text string, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// git runs git in the workspace, whoever owns it.
func (d *demo) git(ctx context.Context, args ...string) (string, error) {
	args = append([]string{"-C", d.workspace(), "-c", "safe.directory=*", "-c", "user.name=demo", "-c", "user.email=demo@localhost"}, args...)
	out, err := exec.CommandContext(ctx, "git", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[len(args)-1], err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// turn starts the front end as an MCP client would and runs one codex call.
func (d *demo) turn(ctx context.Context, model *scripted.Model) error {
	done := d.stage("starting mcp-agents --provider codex and its sandbox")
	args := []string{"--provider", "codex", "--runtime", d.runtime, "--workspace", d.workspace()}
	cmd := exec.Command(d.self, append(args, model.Flags("codex")...)...)
	cmd.Dir = d.workspace()
	cmd.Env = append(os.Environ(), "CODEX_HOME="+d.loginDir())
	cmd.Stderr = prefixed{d.out}
	client := mcp.NewClient(&mcp.Implementation{Name: "demo", Version: "1"}, &mcp.ClientOptions{})
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return fmt.Errorf("connect to mcp-agents: %w", err)
	}
	d.frontEnd = cmd.Process.Pid
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		return errors.Join(fmt.Errorf("list tools: %w", err), session.Close())
	}
	done()
	for _, t := range tools.Tools {
		d.say("tool: %s", t.Name)
	}
	callErr := errors.Join(d.showSandbox(ctx, cmd.Process.Pid), d.call(ctx, session))
	done = d.stage("closing the connection: the sandbox goes with it")
	if err := session.Close(); err != nil {
		return errors.Join(callErr, fmt.Errorf("close the connection: %w", err))
	}
	done()
	return callErr
}

func (d *demo) call(ctx context.Context, session *mcp.ClientSession) error {
	defer d.stage("calling the tool codex: change the greeting")()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "codex", Arguments: map[string]any{
		"prompt": "Change the greeting in greeting.txt.", "cwd": d.workspace(), "sandbox": "workspace-write"}})
	if err != nil {
		return fmt.Errorf("call codex: %w", err)
	}
	var text []string
	for _, c := range result.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			text = append(text, t.Text)
		}
	}
	if result.IsError {
		return fmt.Errorf("codex answered with an error: %s", strings.Join(text, " "))
	}
	d.say("Codex answered: %s", strings.Join(text, " "))
	return nil
}

// prefixed indents the front end's log lines.
type prefixed struct{ w io.Writer }

func (p prefixed) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		fmt.Fprintf(p.w, "         | %s\n", strings.TrimRight(line, "\n"))
	}
	return len(b), nil
}
