//go:build unix

package codex

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/testkit/frontend"
	"mcpagents/internal/testkit/gitrepo"
	"mcpagents/internal/workspace"
)

// A linked worktree or a submodule alone has no history: git's own directory
// comes with it, under the same path, and nothing else does.
func TestSpecMountsGitDirectories(t *testing.T) {
	join := gitrepo.Repositories(t)
	for _, tt := range []struct {
		name     string
		roots    []string
		readOnly bool
		want     []string
		warned   bool
	}{
		{name: "plain repository", roots: []string{"repo"}, want: []string{"repo"}},
		{name: "linked worktree", roots: []string{"wt"}, want: []string{"wt", "repo/.git"}},
		{name: "submodule", roots: []string{"super/mod"}, want: []string{"super/mod", "super/.git/modules/mod"}},
		{name: "read-only", roots: []string{"wt"}, readOnly: true, want: []string{"wt", "repo/.git"}},
		{name: "several roots", roots: []string{"wt", "super/mod"}, want: []string{"wt", "repo/.git", "super/mod", "super/.git/modules/mod"}},
		{name: "a foreign repository", roots: []string{"hostile"}, want: []string{"hostile"}, warned: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var named []string
			for _, root := range tt.roots {
				named = append(named, join(root))
			}
			roots, err := workspace.Resolve(named, named[0], "", nil)
			require.NoError(t, err)
			log := &frontend.Buffer{}
			s := &Sandboxed{Roots: roots, ReadOnly: tt.readOnly, Log: slog.New(slog.NewTextHandler(log, nil)),
				Spec: sandbox.Spec{Mounts: []sandbox.Mount{{Path: "/not/kept"}}}}
			var want []sandbox.Mount
			for _, path := range tt.want {
				want = append(want, sandbox.Mount{Path: join(path), ReadOnly: tt.readOnly})
			}
			spec := s.spec()
			assert.Equal(t, want, spec.Mounts)
			assert.Equal(t, named[0], spec.WorkDir)
			assert.Equal(t, want, s.spec().Mounts, "another launch mounts the same")
			if tt.warned {
				assert.Contains(t, log.String(), "git may not work in a workspace")
			} else {
				assert.NotContains(t, log.String(), "level=WARN")
			}
			if len(tt.want) > len(tt.roots) {
				assert.Contains(t, log.String(), "mounting the git directory that a linked worktree or submodule uses")
			} else {
				assert.NotContains(t, log.String(), "mounting the git directory")
			}
		})
	}
}

// openings is a runtime whose sandboxes start as the test says.
type openings struct {
	sandbox.Runtime
	start func(context.Context) error
}

func (o openings) Start(ctx context.Context, _ sandbox.Spec) (sandbox.Instance, error) {
	return nil, o.start(ctx)
}

// Version and sandbox are asked for at once. A version that cannot be had ends the
// opening and is what is said.
func TestVersionIsAskedWhileTheSandboxOpens(t *testing.T) {
	absent, broken := errors.New("codex is not on PATH"), errors.New("no room")
	open := func(version, start func(context.Context) error) error {
		s := &Sandboxed{Log: slog.New(slog.DiscardHandler), Runtime: openings{start: start},
			CLIVersion: func(ctx context.Context) (string, error) { return "codex-cli 0.153.4", version(ctx) }}
		box, _, err := s.openBox(t.Context())
		require.Nil(t, box)
		return err
	}
	opening, asked := make(chan struct{}), make(chan struct{})
	require.ErrorIs(t, open(
		func(context.Context) error { <-opening; return absent },
		func(ctx context.Context) error { close(opening); <-ctx.Done(); return ctx.Err() }), absent)
	require.ErrorIs(t, open(
		func(context.Context) error { close(asked); return nil },
		func(context.Context) error { <-asked; return broken }), broken)
}
