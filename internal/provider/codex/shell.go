package codex

import (
	"context"
	"errors"
	"fmt"

	"mcpagents/internal/mcp/proxy"
	"mcpagents/internal/provider/codex/config"
	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/wire"
)

// Shell starts a command of the user's in a sandbox like the one that a call
// gets: its mounts, its limits, its login and its configuration. The command has
// a terminal of the size pty, or pipes where that is nil. close ends the sandbox.
func (s *Sandboxed) Shell(ctx context.Context, argv []string, pty *wire.Resize) (_ *sandbox.Process, close func(context.Context) error, err error) {
	if s.RootsErr != nil {
		return nil, nil, s.RootsErr
	}
	snapshot, err := s.snapshot(ctx)
	if err != nil {
		return nil, nil, err
	}
	opening, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	output, err := s.CLIVersion(opening)
	if err != nil {
		snapshot.Release()
		return nil, nil, err
	}
	box, err := sandbox.Open(opening, s.Runtime, s.spec(), s.Log)
	if err != nil {
		snapshot.Release()
		return nil, nil, err
	}
	close = func(ctx context.Context) error {
		defer snapshot.Release()
		return box.Close(ctx)
	}
	proc, err := func() (*sandbox.Process, error) {
		if err := s.furnish(opening, box, snapshot, config.GateOf(config.ParseVersion(output))); err != nil {
			return nil, err
		}
		return box.Spawn(opening, sandbox.Command{Argv: argv, Env: s.environ(box), Dir: s.dir(), Stdin: true, PTY: pty,
			Watch: []string{s.Login.Credential}, Changed: func(c wire.Collected) { snapshot.Rotated(c.Name, c.Data, s.Log) }})
	}()
	if err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), proxy.CloseTime)
		defer cancel()
		return nil, nil, errors.Join(fmt.Errorf("start a shell: %w", err), close(clean))
	}
	return proc, close, nil
}
