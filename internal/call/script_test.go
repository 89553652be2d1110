package call_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// limit bounds what a test waits for.
const limit = 30 * time.Second

// bin holds mcp-agents, and the fake Codex as codex.
var bin string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if bin, err = os.MkdirTemp("", "mcp-agents-call-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(bin)
	if err := os.Chmod(bin, 0o755); err != nil { // a container of another uid starts the program
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for name, pkg := range map[string]string{"mcp-agents": "mcpagents/cmd/mcp-agents", "codex": "mcpagents/internal/testkit/fakecodex"} {
		cmd := exec.Command("go", "build", "-o", filepath.Join(bin, name), pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n%s", pkg, err, out)
			return 1
		}
	}
	if err := makeLogin(filepath.Join(bin, "home", ".codex")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func makeLogin(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "auth.json"), []byte(`{"OPENAI_API_KEY":"made-up"}`), 0o600)
}

func TestScripts(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the local runtime's fake Codex is a Unix program")
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
			env.Setenv("HOME", filepath.Join(bin, "home"))
			env.Setenv("CODEX_HOME", filepath.Join(bin, "home", ".codex"))
			env.Setenv("MCP_AGENTS_RUNTIME", "local")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":      status,
			"interrupted": interrupted,
			"alone":       alone,
		},
	})
}

// status N COMMAND... runs a command, whose exit status must be N.
func status(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit status %d, want %s", code, args[0])
	}
}

// interrupted FILE SIGNAL N COMMAND... sends a signal to a command when the file
// has come into being. The exit status must be N, within what a CI system waits.
func interrupted(ts *testscript.TestScript, _ bool, args []string) {
	file := ts.MkAbs(args[0])
	number, err := strconv.Atoi(args[1])
	ts.Check(err)
	cmd := exec.Command(filepath.Join(bin, args[3]), args[4:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "CODEX_HOME", "HOME", "MCP_AGENTS_RUNTIME"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	stderr, err := os.Create(ts.MkAbs("interrupted.txt"))
	ts.Check(err)
	defer stderr.Close()
	cmd.Stderr = stderr
	ts.Check(cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	defer func() { _ = cmd.Process.Kill(); <-ended }()
	deadline := time.After(limit)
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		if _, err := os.Stat(file); err == nil {
			break
		}
		select {
		case <-tick.C:
		case <-ended:
			ts.Fatalf("it ended by itself: %v\n%s", cmd.ProcessState, ts.ReadFile("interrupted.txt"))
		case <-deadline:
			ts.Fatalf("%s did not come into being\n%s", args[0], ts.ReadFile("interrupted.txt"))
		}
	}
	ts.Check(cmd.Process.Signal(syscall.Signal(number)))
	select {
	case <-ended:
	case <-time.After(9 * time.Second):
		ts.Fatalf("it did not end in time")
	}
	if got := strconv.Itoa(cmd.ProcessState.ExitCode()); got != args[2] {
		ts.Fatalf("exit status %s, want %s\n%s", got, args[2], ts.ReadFile("interrupted.txt"))
	}
}

// alone fails if a process that belongs to this script is there: one whose
// command line or environment names its directory. ! alone wants one.
func alone(ts *testscript.TestScript, neg bool, _ []string) {
	if runtime.GOOS != "linux" {
		return
	}
	work := ts.Getenv("WORK")
	var found []string
	for _, name := range []string{"cmdline", "environ"} {
		files, err := filepath.Glob("/proc/[0-9]*/" + name)
		ts.Check(err)
		for _, file := range files {
			// Of a process that has just ended, or is another user's, nothing is read.
			if b, err := os.ReadFile(file); err == nil && strings.Contains(string(b), work) && !strings.HasPrefix(file, fmt.Sprintf("/proc/%d/", os.Getpid())) {
				found = append(found, strings.ReplaceAll(string(b), "\x00", " "))
			}
		}
	}
	if (len(found) > 0) != neg {
		ts.Fatalf("processes of this script: %d\n%s", len(found), strings.Join(found, "\n"))
	}
}
