package docker

import (
	"context"
	"os"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/sandboxtest"
	"mcpagents/internal/testkit/images"
)

func TestMain(m *testing.M) {
	sandboxtest.Main(func() (sandbox.Runtime, error) { return New("") })
	os.Exit(m.Run())
}

// testRuntime is the engine's runtime and a spec without a network.
func testRuntime(t *testing.T) (*Runtime, sandbox.Spec) {
	image := images.Codex(t)
	rt, err := New("")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	return rt, sandbox.Spec{Provider: "codex", Image: image, FilesDir: ".codex", Network: "none", User: "1000:1000"}
}

func TestRuntime(t *testing.T) {
	rt, spec := testRuntime(t)
	sandboxtest.Run(t, sandboxtest.Subject{Runtime: rt, Spec: func(*testing.T) sandbox.Spec { return spec },
		Left: func(spec sandbox.Spec) []string {
			e, err := rt.connect(t.Context())
			if err != nil {
				return []string{err.Error()}
			}
			list, err := e.ContainerList(context.WithoutCancel(t.Context()), container.ListOptions{All: true,
				Filters: filters.NewArgs(filters.Arg("label", LabelSandbox+"="+spec.ID))})
			if err != nil {
				return []string{err.Error()}
			}
			var left []string
			for _, c := range list {
				left = append(left, c.ID[:12]+" "+c.State)
			}
			return left
		}})
}
