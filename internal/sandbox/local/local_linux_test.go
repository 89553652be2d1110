package local

import (
	"os"
	"testing"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/sandboxtest"
	"mcpagents/internal/sandboxinit"
)

// TestMain makes the test binary its own sandbox-init.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "sandbox-init" {
		os.Exit(sandboxinit.Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

func TestRuntime(t *testing.T) {
	rt, err := New(os.Args[0], "sandbox-init")
	if err != nil {
		t.Fatal(err)
	}
	sandboxtest.Run(t, rt, func(t *testing.T) sandbox.Spec {
		return sandbox.Spec{Provider: "codex", HomeRoot: t.TempDir(), HomePrefix: "mcp-agents-codex-"}
	})
}
