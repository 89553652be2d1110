package credentials

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"mcpagents/internal/sandbox/guest"
)

// fakeDir holds fakelogin under the name codex, so that on a PATH and in an image it is Codex.
var fakeDir string

func fakeCodex() string { return filepath.Join(fakeDir, "codex") }

// TestMain makes the test binary a front end, and its own sandbox-init.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "sandbox-init":
		os.Exit(guest.Main(os.Args[2:]))
	case os.Getenv(frontEndVariable) != "":
		os.Exit(frontEnd(os.Getenv(frontEndVariable)))
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "mcp-agents-logintest-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fakeDir = dir
	if err := os.Setenv("PATH", dir+":"+os.Getenv("PATH")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	build := exec.Command("go", "build", "-o", fakeCodex(), "mcpagents/internal/testkit/fakelogin")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build fakelogin: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}
