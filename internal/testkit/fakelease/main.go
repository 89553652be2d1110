//go:build unix

// Command fakelease is a lease helper for tests. It lends "browsers": processes
// of its own that answer /json/version on the control port and end with the
// process that asked for them.
//
// FAKE_LEASE is a JSON object that says what acquire does instead (Scenario). A
// lease is a file in Dir, so that tests can count them.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Scenario is what a test asks of the helper.
type Scenario struct {
	Dir string // of the leases
	// Acquire is what acquire does: empty lends a browser; hang waits for
	// SIGTERM; deaf waits for SIGKILL; die kills itself; garbage and flood write
	// no record, the latter 20 MB; taken says that the port is, Times times.
	Acquire string
	Times   int
}

// Exit statuses of the protocol.
const (
	none  = 69
	taken = 75
)

func main() {
	var s Scenario
	if err := json.Unmarshal([]byte(os.Getenv("FAKE_LEASE")), &s); err != nil || len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "fakelease is for tests: FAKE_LEASE must hold a scenario:", err)
		os.Exit(2)
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	port := flags.Int("local-cdp-port", 0, "")
	generation := flags.String("generation", "", "")
	parent := flags.Int("parent", 0, "")
	for _, name := range []string{"session", "viewport", "app-port", "reason"} {
		flags.String(name, "", "")
	}
	_ = flags.Parse(os.Args[2:])
	path := filepath.Join(s.Dir, *generation)
	switch os.Args[1] {
	case "acquire":
		os.Exit(s.acquire(*port))
	case "browser":
		os.Exit(browse(path, *port, *parent))
	case "status":
		if _, err := os.Stat(path); err != nil {
			os.Exit(none)
		}
	case "release":
		os.Exit(release(path))
	default:
		os.Exit(2)
	}
}

func (s Scenario) acquire(port int) int {
	switch s.Acquire {
	case "hang", "deaf":
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		for range term {
			if s.Acquire == "hang" {
				return none
			}
		}
	case "die":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "garbage":
		_, _ = io.CopyN(os.Stdout, pattern("\xff\x00=\r{"), 4<<10)
		return 0
	case "flood":
		_, _ = io.CopyN(os.Stdout, pattern("generation=x\n"), 20_000_000)
		return 0
	case "taken":
		marks, _ := filepath.Glob(filepath.Join(s.Dir, "..", "taken-*"))
		if len(marks) < s.Times {
			_ = os.WriteFile(filepath.Join(s.Dir, "..", fmt.Sprintf("taken-%d", len(marks))), nil, 0o600)
			return taken
		}
	}
	return s.lend(port)
}

// lend starts a browser for the process that called the helper.
func (s Scenario) lend(port int) int {
	self, err := os.Executable()
	if err != nil {
		return 1
	}
	generation := fmt.Sprintf("g-%d-%d", port, time.Now().UnixNano())
	cmd := exec.Command(self, "browser", "--generation", generation, "--local-cdp-port", strconv.Itoa(port), "--parent", strconv.Itoa(os.Getppid()))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return 1
	}
	line := make([]byte, 16)
	if n, _ := out.Read(line); !strings.HasPrefix(string(line[:n]), "ready") {
		return taken
	}
	fmt.Printf("record_version=1\nstate=ready\ngeneration=%s\nlocal_cdp_port=%d\nbrowser_url=http://127.0.0.1:%d\n", generation, port, port)
	return 0
}

// browse is the browser. It ends at SIGTERM and with its parent.
func browse(path string, port, parent int) int {
	l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return taken
	}
	if err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return 1
	}
	defer os.Remove(path)
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	fmt.Println("ready")
	_ = os.Stdout.Close()
	_ = os.Stderr.Close()
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"webSocketDebuggerUrl":"ws://127.0.0.1:%d/devtools/browser/%d"}`, port, os.Getpid())
		}))
	}()
	for {
		select {
		case <-term:
			return 0
		case <-time.After(50 * time.Millisecond):
			if syscall.Kill(parent, 0) == syscall.ESRCH {
				return 0
			}
		}
	}
}

// release ends a browser and returns when it has.
func release(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return none
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		return 70
	}
	_ = syscall.Kill(pid, syscall.SIGTERM)
	_ = syscall.Kill(pid, syscall.SIGCONT) // one that was frozen does not hear the other
	for range 500 {
		if _, err := os.Stat(path); err != nil {
			return 0
		}
		time.Sleep(10 * time.Millisecond)
	}
	return 70
}

// pattern repeats itself.
type pattern string

func (p pattern) Read(buf []byte) (int, error) {
	n := 0
	for n < len(buf) {
		n += copy(buf[n:], p)
	}
	return n, nil
}
