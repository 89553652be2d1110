package helper

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// fake says what the test binary does when it is called as a lease helper.
type fake struct {
	Stdout, Stderr string // $port stands for the port that was asked for
	Exit           int
	Flood          int    // bytes on stdout first
	Hang           bool   // ends on SIGTERM only, with the exit status of OnTerm
	OnTerm         string // what it writes then
	Deaf           bool   // ... or not even then
	Child          bool   // leaves a child with its outputs
	Log            string // file for what it was called with and how it ended
}

const variable = "FAKE_LEASE_HELPER"

func TestMain(m *testing.M) {
	if text := os.Getenv(variable); text != "" {
		var f fake
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			panic(err)
		}
		os.Exit(f.run(os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

func (f fake) run(args []string) int {
	f.note(fmt.Sprintf("%s NO_COLOR=%s", strings.Join(args, " "), os.Getenv("NO_COLOR")))
	port := ""
	for i, a := range args {
		if a == "--local-cdp-port" {
			port = args[i+1]
		}
	}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	if f.Child {
		child := exec.Command("sleep", "60")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			panic(err)
		}
		f.note(fmt.Sprintf("child %d", child.Process.Pid))
	}
	if f.Flood > 0 {
		_, _ = io.CopyN(os.Stdout, zeros{}, int64(f.Flood))
	}
	fmt.Print(strings.ReplaceAll(f.Stdout, "$port", port))
	fmt.Fprint(os.Stderr, f.Stderr)
	if !f.Hang {
		return f.Exit
	}
	for {
		select {
		case <-term:
			f.note("TERM")
			if !f.Deaf {
				fmt.Print(strings.ReplaceAll(f.OnTerm, "$port", port))
				return f.Exit
			}
		case <-time.After(time.Minute):
			return 99
		}
	}
}

func (f fake) note(line string) {
	if f.Log == "" {
		return
	}
	file, err := os.OpenFile(f.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	fmt.Fprintln(file, line)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}
