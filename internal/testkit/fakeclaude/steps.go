package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// step is one thing that a run does.
type step struct {
	Do      string `json:"do"`
	Text    string `json:"text"`
	Repeat  int    `json:"repeat"` // of the text
	Type    string `json:"type"`   // of an event
	Subtype string `json:"subtype"`
	IsError bool   `json:"is_error"`
	MS      int    `json:"ms"`
	Code    int    `json:"code"`
	Path    string `json:"path"`
}

func (s step) text() string { return strings.Repeat(s.Text, max(1, s.Repeat)) }

// play does the script.
func (c *cli) play() {
	var steps []step
	if json.Unmarshal([]byte(c.prompt), &steps) != nil {
		steps = []step{{Do: "result", Text: c.prompt}}
		if c.stream {
			steps = append([]step{{Do: "event", Type: "system", Subtype: "init"}}, steps...)
		}
	}
	for i := 0; i < len(steps); i++ {
		if steps[i].Do == "first-time" { // otherwise the next step is left out
			f, err := os.OpenFile(steps[i].Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
			if err != nil {
				i++
				continue
			}
			_ = f.Close()
			continue
		}
		c.step(steps[i])
	}
}

func (c *cli) step(s step) {
	switch s.Do {
	case "result":
		c.result(s.text(), s.IsError)
	case "event":
		fmt.Printf(`{"type":%q,"subtype":%q,"text":%q}`+"\n", s.Type, s.Subtype, s.Text)
	case "stdout": // as it is, so a part of a line too
		_, _ = os.Stdout.WriteString(s.text())
	case "stdout-hex": // bytes that no JSON string holds
		b, err := hex.DecodeString(s.Text)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		_, _ = os.Stdout.Write(b)
	case "stderr":
		_, _ = os.Stderr.WriteString(s.text())
	case "stdout-bytes":
		_, _ = io.CopyN(os.Stdout, letters{}, int64(s.Repeat))
	case "stderr-bytes":
		_, _ = io.CopyN(os.Stderr, letters{}, int64(s.Repeat))
	case "pause":
		time.Sleep(time.Duration(s.MS) * time.Millisecond)
	case "until-interrupt":
		<-c.interrupted
	case "until-end":
		<-c.ended
	case "stall":
		time.Sleep(time.Hour) // a select without cases would be a deadlock that Go ends
	case "exit":
		os.Exit(s.Code)
	case "signal":
		p, _ := os.FindProcess(os.Getpid())
		_ = p.Signal(syscall.Signal(s.Code))
		time.Sleep(time.Minute)
	case "ignore-term":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	case "until-term":
		told := make(chan os.Signal, 1)
		signal.Notify(told, syscall.SIGTERM)
		<-told
	case "linger": // a grandchild in a session of its own
		if err := exec.Command(os.Args[0], "linger", "fork").Run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	case "write": // and answer with what came of it
		text := "wrote " + s.Path
		if err := os.WriteFile(s.Path, []byte(s.Text), 0o644); err != nil {
			text = err.Error()
		}
		c.result(text, false)
	case "show": // answer with a file's content
		b, err := os.ReadFile(s.Path)
		if err != nil {
			b = []byte(err.Error())
		}
		c.result(string(b), false)
	case "rotate": // the login, as a refresh of its token does
		path := os.Getenv("CLAUDE_CONFIG_DIR") + "/.credentials.json"
		if err := os.WriteFile(path+".new", []byte(s.Text), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	case "record":
		c.record(s.Path)
	default:
		fmt.Fprintf(os.Stderr, "unknown step %q\n", s.Do)
		os.Exit(2)
	}
}

func (c *cli) result(text string, isError bool) {
	if c.agy {
		fmt.Println(text)
		return
	}
	quoted, _ := json.Marshal(text)
	fmt.Printf(`{"type":"result","subtype":"success","is_error":%t,"result":%s,"session_id":"s"}`+"\n", isError, quoted)
}

// record appends how this run was started to a file.
func (c *cli) record(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	dir, _ := os.Getwd()
	b, _ := json.Marshal(map[string]any{"argv": os.Args[1:], "dir": dir, "env": os.Environ(), "stdin": c.stdin, "pid": os.Getpid()})
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	_, _ = f.Write(append(b, '\n'))
	_ = f.Close()
}

// letters is an endless line.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'z'
	}
	return len(p), nil
}

// linger forks a process into a session of its own and ends, or is that
// process: it ignores all that can be ignored and stays.
func linger(stage string) {
	if stage == "stay" {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		time.Sleep(10 * time.Minute)
		return
	}
	cmd := exec.Command(os.Args[0], "linger", "stay")
	detach(cmd)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
