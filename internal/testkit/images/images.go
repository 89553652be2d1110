// Package images names the images that tests run. A test that needs one is
// skipped where there is no engine, or fails where the environment says that
// there must be one. What imports this package belongs to the system tier of
// `make test`, see .ci/test.sh.
package images

import (
	"os"
	"os/exec"
	"sync"
	"testing"

	"mcpagents/internal/version"
)

// Codex is the image with the real Codex.
func Codex(t testing.TB) string { t.Helper(); return built(t, "MCP_AGENTS_TEST_IMAGE_CODEX") }

// Claude is the image with the real Claude Code.
func Claude(t testing.TB) string { t.Helper(); return built(t, "MCP_AGENTS_TEST_IMAGE_CLAUDE") }

// FrontEnd is the image with mcp-agents itself.
func FrontEnd() string {
	if image := os.Getenv("MCP_AGENTS_TEST_IMAGE"); image != "" {
		return image
	}
	return "mcp-agents:" + version.Version
}

var present sync.Map // image → bool

func built(t testing.TB, variable string) string {
	t.Helper()
	image := os.Getenv(variable)
	there, known := present.Load(image)
	if !known {
		there = image != "" && exec.Command("docker", "image", "inspect", image).Run() == nil
		present.Store(image, there)
	}
	if there == false {
		if os.Getenv("MCP_AGENTS_REQUIRE_ENGINE") != "" {
			t.Fatalf("an engine is required, but image %q of %s cannot be found with it: use `make test`", image, variable)
		}
		t.Skip("no engine or no image: `make test` makes both where they can be had")
	}
	return image
}

// Browser are the images of the browser's tool server and of the browser.
func Browser(t testing.TB) (tools, browser string) {
	t.Helper()
	tools, browser = os.Getenv("MCP_AGENTS_TEST_IMAGE_CHROME_DEVTOOLS"), os.Getenv("MCP_AGENTS_TEST_IMAGE_CHROMIUM")
	if tools == "" || browser == "" {
		if os.Getenv("MCP_AGENTS_REQUIRE_BROWSER") != "" {
			t.Fatal("MCP_AGENTS_REQUIRE_BROWSER is set, but MCP_AGENTS_TEST_IMAGE_CHROME_DEVTOOLS and MCP_AGENTS_TEST_IMAGE_CHROMIUM " +
				"name no images: use `make test-browser`")
		}
		t.Skip("no browser images: `make test-browser` builds them where there is an engine")
	}
	return tools, browser
}
