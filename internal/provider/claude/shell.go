package claude

import (
	"context"

	"mcpagents/internal/provider/oneshot"
	"mcpagents/internal/sandbox/wire"
)

// Shell starts a command of the user's in a sandbox like the one that
// claude_code gets. The command has a terminal of the size pty, or pipes where
// that is nil.
func (p *Provider) Shell(ctx context.Context, argv []string, pty *wire.Resize) (*oneshot.Turn, error) {
	if p.cfg.RootsErr != nil {
		return nil, p.cfg.RootsErr
	}
	root := p.cfg.Roots.Default()
	command, err := p.command(ctx, argv, root, root, p.cfg.ReadOnly)
	if err != nil {
		return nil, err
	}
	command.PTY = pty
	return p.cfg.Launcher.Start(ctx, command)
}
