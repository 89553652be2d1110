package lease

import (
	"context"
	"io"
	"time"

	"mcpagents/internal/sandbox/wire"
)

// IdentityTimeout bounds one Lessor.Identity.
const IdentityTimeout = 3 * time.Second

// Downstream runs chrome-devtools-mcp where it can reach the leased browser.
// It is started before there is a browser, connects at its first tool call, and
// may be stopped and started again during a lease.
type Downstream interface {
	// Port picks the control port for the next Acquire: one that is free where
	// the downstream runs. After ErrPortTaken it is asked for another one.
	Port(ctx context.Context) (int, error)

	// Start starts chrome-devtools-mcp with the arguments, which name the
	// control port in --browserUrl. The context bounds the start only, not the
	// child. The error's text is for the caller of a tool: what is missing and
	// what to do about it.
	Start(ctx context.Context, args []string) (*Child, error)
}

// Child is a running chrome-devtools-mcp.
type Child struct {
	Stdin  io.WriteCloser
	Stdout io.Reader
	Stderr io.Reader
	// Wait returns how it ended, or an error if its sandbox was lost. It ends
	// with its context.
	Wait func(context.Context) (wire.Exit, error)
	// Close kills it with everything that it started and returns when that is
	// gone. It makes reads, writes and Wait return, and is called exactly once,
	// also after the child has ended. A browser on lease stays.
	Close func(context.Context) error
	// Source says where it came from, for the log: "explicit", "npx fallback",
	// or an image.
	Source string
}
