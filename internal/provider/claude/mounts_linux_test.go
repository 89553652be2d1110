package claude

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/testkit/frontend"
	"mcpagents/internal/testkit/gitrepo"
)

// A linked worktree or a submodule alone has no history: git's own directory
// comes with it, under the same path, and nothing else does.
func TestMountsOfGitDirectories(t *testing.T) {
	join := gitrepo.Repositories(t)
	for _, tt := range []struct {
		name, root string
		readOnly   bool
		want       []string
		warned     bool
	}{
		{name: "plain repository", root: "repo", want: []string{"repo"}},
		{name: "linked worktree", root: "wt", want: []string{"wt", "repo/.git"}},
		{name: "submodule", root: "super/mod", want: []string{"super/mod", "super/.git/modules/mod"}},
		{name: "review of a worktree", root: "wt", readOnly: true, want: []string{"wt", "repo/.git"}},
		{name: "a foreign repository", root: "hostile", want: []string{"hostile"}, warned: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log frontend.Buffer
			p := &Provider{log: slog.New(slog.NewTextHandler(&log, nil))}
			var want []sandbox.Mount
			for _, path := range tt.want {
				want = append(want, sandbox.Mount{Path: join(path), ReadOnly: tt.readOnly})
			}
			assert.Equal(t, want, p.mounts(join(tt.root), tt.readOnly))
			if tt.warned {
				assert.Contains(t, log.String(), "git may not work in a workspace")
			} else {
				assert.NotContains(t, log.String(), "level=WARN")
			}
		})
	}
}
