package credentials

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"mcpagents/internal/credentials"
	"mcpagents/internal/provider/codex"
	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/docker"
	"mcpagents/internal/sandbox/local"
	"mcpagents/internal/workspace"
)

// frontEndVariable holds the settings of a front end as JSON.
const frontEndVariable = "LOGINTEST_FRONT_END"

// settings are those of one front end.
type settings struct {
	Image, Network string // empty: the local runtime
	Login          string // the user's directory
	Workspace      string
	Homes          string // where local sandboxes have their homes
	Stay           bool   // keep the sandbox after the turn, until the end of stdin
	NoLock         bool   // the negative control: the login does not tell when it ends
}

// launcher is Codex as `mcp-agents --provider codex` starts it.
func (s settings) launcher(log *slog.Logger) (*codex.Sandboxed, error) {
	roots, err := workspace.Resolve([]string{s.Workspace}, s.Workspace, "", nil)
	if err != nil {
		return nil, err
	}
	l := &codex.Sandboxed{
		Spec:  sandbox.Spec{Provider: "codex", Instance: "logintest", HomeRoot: s.Homes, HomePrefix: "mcp-agents-codex-"},
		Roots: roots, Dir: s.Workspace, Login: credentials.Codex(s.Login), NeedLogin: true,
		Env: []string{"FAKELOGIN_SERVER"}, Log: log,
		CLIVersion: func(context.Context) (string, error) { return "codex-cli 0.153.4", nil },
	}
	if s.NoLock {
		l.Login.Expiry = nil
	}
	if s.Image == "" {
		l.Runtime, err = local.New(os.Args[0], "sandbox-init")
		return l, err
	}
	l.Spec.Image, l.Spec.Network, l.Spec.User, l.Spec.FilesDir = s.Image, s.Network, "1000:1000", ".codex"
	l.Runtime, err = docker.New("")
	return l, err
}

// frontEnd is this binary as a front end: it starts a sandbox, has one turn and ends. What it
// logs and how the turn ended are lines on stdout.
func frontEnd(encoded string) int {
	var s settings
	if err := json.Unmarshal([]byte(encoded), &s); err != nil {
		fmt.Println("settings:", err)
		return 1
	}
	l, err := s.launcher(slog.New(slog.NewTextHandler(os.Stdout, nil)))
	if err != nil {
		fmt.Println("launcher:", err)
		return 1
	}
	child, err := l.Launch(context.Background())
	if err != nil {
		fmt.Println("result: not launched:", err)
		return 1
	}
	go func() { _, _ = io.Copy(os.Stdout, child.Stderr) }() // ends with the sandbox
	_, _ = io.WriteString(child.Stdin, "turn\n")
	line, err := bufio.NewReader(child.Stdout).ReadString('\n')
	if err != nil {
		line = "no answer: " + err.Error()
	}
	fmt.Println("result:", strings.TrimSpace(line))
	if s.Stay {
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	fmt.Println("closed:", child.Close(ctx))
	return 0
}
