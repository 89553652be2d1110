package main

import (
	"bytes"
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

// step is one thing that a call does.
type step struct {
	Do     string          `json:"do"`
	Text   string          `json:"text"`
	Type   string          `json:"type"`   // of an event
	Fields json.RawMessage `json:"fields"` // of an event, beside its type
	MS     int             `json:"ms"`
	Bytes  int             `json:"bytes"`
	Code   int             `json:"code"`
	Path   string          `json:"path"`
}

// run runs the script of a call. A call whose script never answers ends
// without an answer.
func (s *server) run(m message, cancelled <-chan struct{}) {
	var steps []step
	if json.Unmarshal([]byte(m.Params.Arguments.Prompt), &steps) != nil {
		s.answer(m, m.Params.Arguments.Prompt)
		return
	}
	for _, st := range steps {
		if !s.step(m, st, cancelled) {
			return
		}
	}
}

// thread is the thread id of a call.
func thread(m message) string {
	if m.Params.Arguments.ThreadID != "" {
		return m.Params.Arguments.ThreadID
	}
	return "thread-" + strings.Trim(string(m.ID), `"`)
}

func (s *server) answer(m message, text string) {
	quoted, _ := json.Marshal(text)
	s.result(m.ID, fmt.Sprintf(`{"content":[{"type":"text","text":%s}],"structuredContent":{"threadId":%q,"content":%s}}`, quoted, thread(m), quoted))
}

func (s *server) event(m message, st step) {
	fields := map[string]any{}
	_ = json.Unmarshal(st.Fields, &fields)
	fields["type"] = st.Type
	msg, _ := json.Marshal(fields)
	s.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"codex/event","params":{"_meta":{"requestId":%s,"threadId":%q},"id":"0","msg":%s}}`+"\n", m.ID, thread(m), msg))
}

// step does one step; false ends the script.
func (s *server) step(m message, st step, cancelled <-chan struct{}) bool {
	switch st.Do {
	case "answer":
		s.answer(m, st.Text)
	case "answer-bytes":
		s.answer(m, strings.Repeat("x", st.Bytes))
	case "raw": // as it is, so a part of a message too
		s.write(st.Text)
	case "file": // the bytes of a file
		b, err := os.ReadFile(st.Path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return false
		}
		s.write(string(b))
	case "event":
		s.event(m, st)
	case "wait": // a cancel does not end it
		time.Sleep(time.Duration(st.MS) * time.Millisecond)
	case "until-cancelled":
		<-cancelled
	case "stall":
		time.Sleep(time.Hour) // a select without cases would be a deadlock that Go ends
	case "stdout":
		s.flood(st.Bytes)
	case "stderr":
		_, _ = io.CopyN(os.Stderr, zeros{}, int64(st.Bytes))
	case "exit":
		os.Exit(st.Code)
	case "write":
		if err := os.WriteFile(st.Path, []byte(st.Text), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	default:
		return s.misbehave(st)
	}
	return true
}

// misbehave does what a CLI must not do.
func (s *server) misbehave(st step) bool {
	switch st.Do {
	case "ignore-term":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	case "linger": // a grandchild in a session of its own
		cmd := exec.Command(os.Args[0], "linger", "fork")
		if err := cmd.Run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	default:
		fmt.Fprintf(os.Stderr, "unknown step %q\n", st.Do)
		return false
	}
	return true
}

// flood writes notifications that nobody asked for.
func (s *server) flood(n int) {
	line := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + strings.Repeat("y", 64<<10) + `"}}` + "\n"
	for ; n > 0; n -= len(line) {
		s.write(line)
	}
}

// zeros is an endless stream of letters.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte("z"), len(p))), nil }

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
