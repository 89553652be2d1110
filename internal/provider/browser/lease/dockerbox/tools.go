package dockerbox

import (
	"context"
	"errors"
	"fmt"

	"mcpagents/internal/provider/browser/lease"
	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/wire"
)

// command is the tool server's program.
const command = "chrome-devtools-mcp"

// toolEnv keeps the tool server from asking for updates, from reporting what it
// is used for, and from colours.
var toolEnv = []string{"CHROME_DEVTOOLS_MCP_NO_UPDATE_CHECKS=1", "CHROME_DEVTOOLS_MCP_NO_USAGE_STATISTICS=1", "NO_COLOR=1"}

// Port is the next control port. The namespace is ours alone, so any port is
// free there unless a port of the application has the same number.
func (b *Box) Port(context.Context) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.port++; b.port > lastPort {
		b.port = firstPort
	}
	return b.port, nil
}

// Start opens the box, where it is not open yet, and starts the tool server in
// its namespace. File tools may use the workspaces without being given them by
// the client.
func (b *Box) Start(ctx context.Context, args []string) (*lease.Child, error) {
	done, err := b.take(ctx)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", command, err)
	}
	defer done()
	home, err := b.ensure(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	spec := b.cfg.Workspace
	spec.Provider, spec.Image, spec.Network = Tools, b.cfg.ToolImage, "container:"+home.ID()
	box, err := sandbox.Open(ctx, b.cfg.Runtime, spec, b.cfg.Log)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", command, err)
	}
	argv := append(b.cfg.Command[:len(b.cfg.Command):len(b.cfg.Command)], args...)
	argv = append(argv, "--performanceCrux=false") // or it sends the addresses of traced pages to its vendor
	for _, m := range spec.Mounts {
		argv = append(argv, "--workspace", m.Path)
	}
	env := append(b.cfg.Runtime.Environ(spec), toolEnv...)
	proc, err := box.Spawn(ctx, sandbox.Command{Argv: argv, Env: append(env, b.cfg.Env...), Dir: b.cfg.Dir, Stdin: true})
	if err != nil {
		return nil, errors.Join(err, box.Close(context.WithoutCancel(ctx)))
	}
	b.mu.Lock()
	b.joined = home.ID()
	b.mu.Unlock()
	return &lease.Child{Stdin: proc.Stdin(), Stdout: proc.Stdout(), Stderr: proc.Stderr(), Source: "image " + b.cfg.ToolImage,
		Wait:  func(ctx context.Context) (wire.Exit, error) { return proc.Wait(ctx) },
		Close: box.Close}, nil
}
