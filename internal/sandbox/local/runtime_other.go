//go:build !linux

package local

import (
	"context"
	"errors"

	"mcpagents/internal/sandbox"
)

// Runtime cannot make sandboxes on this system.
type Runtime struct{}

// New reports that the local runtime needs Linux (child subreaper, pidfd, /proc).
func New(...string) (*Runtime, error) {
	return nil, errors.New("the local runtime needs Linux: use --runtime docker on this system")
}

// Start is never reached: New fails.
func (r *Runtime) Start(context.Context, sandbox.Spec) (sandbox.Instance, error) {
	return nil, errors.ErrUnsupported
}

// AddRoot is never reached: New fails.
func (r *Runtime) AddRoot(string, string) {}

// List is never reached: New fails.
func (r *Runtime) List(context.Context) ([]sandbox.Listed, error) { return nil, errors.ErrUnsupported }

// Sweep is never reached: New fails.
func (r *Runtime) Sweep(context.Context, bool) ([]string, error) { return nil, errors.ErrUnsupported }
