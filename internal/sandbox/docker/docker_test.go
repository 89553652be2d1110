package docker

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/sandboxtest"
)

// testImage is the Codex image that `make test` built. Without an engine the
// suite is skipped, unless the environment says that there must be one.
func testImage(t *testing.T) string {
	image := os.Getenv("MCP_AGENTS_TEST_IMAGE_CODEX")
	if image == "" {
		if os.Getenv("MCP_AGENTS_REQUIRE_ENGINE") != "" {
			t.Fatal("MCP_AGENTS_REQUIRE_ENGINE is set, but no image is named in MCP_AGENTS_TEST_IMAGE_CODEX: use `make test`")
		}
		t.Skip("no engine: `make test` sets MCP_AGENTS_TEST_IMAGE_CODEX where there is one")
	}
	return image
}

func TestRuntime(t *testing.T) {
	image := testImage(t)
	rt, err := New("")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	sandboxtest.Run(t, rt, func(t *testing.T) sandbox.Spec {
		return sandbox.Spec{Provider: "codex", Image: image, FilesDir: ".codex", Network: "none", User: "1000:1000"}
	})
}
