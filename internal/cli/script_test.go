package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"mcpagents/internal/version"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"mcp-agents": func() { os.Exit(Main(os.Args[1:])) }})
}

// The scripts see an engine that is not there: what needs one says so. With an
// engine the subcommands are tested in the acceptance suite.
func TestScripts(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the scripts name Unix paths")
	}
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": status},
		Setup: func(env *testscript.Env) error {
			// Where testscript has put the program, for a PATH with nothing else.
			dir, _, _ := strings.Cut(env.Getenv("PATH"), string(filepath.ListSeparator))
			env.Setenv("MCPDIR", dir)
			env.Setenv("VERSION", version.Version)
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("DOCKER_HOST", "unix://"+filepath.Join(env.WorkDir, "none.sock"))
			return os.MkdirAll(filepath.Join(env.WorkDir, "home", "project"), 0o755)
		},
	})
}

// status is the command "status N PROGRAM [ARGUMENT...]": exec with the exit
// status that is wanted.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N PROGRAM [ARGUMENT...]")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if fmt.Sprint(got) != args[0] {
		ts.Fatalf("%v ended with %d, not %s", args[1:], got, args[0])
	}
}
