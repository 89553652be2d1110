package main

import (
	"bytes"
	"encoding/json"
	"errors"
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
	Data   []byte          `json:"data"`   // behind the text of raw; in base64, for what is no UTF-8
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
		s.write(st.Text + string(st.Data))
	case "frame": // as raw, with the call's id for $id
		s.write(strings.ReplaceAll(st.Text, "$id", string(m.ID)))
	case "fail":
		text, _ := json.Marshal(st.Text)
		s.result(m.ID, fmt.Sprintf(`{"content":[{"type":"text","text":%s}],"isError":true}`, text))
	case "file": // the bytes of a file
		b, err := os.ReadFile(st.Path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return false
		}
		s.write(string(b))
	case "event":
		s.event(m, st)
	case "ticks": // Code events, a wait after each
		for range st.Code {
			s.event(m, st)
			time.Sleep(time.Duration(st.MS) * time.Millisecond)
		}
	case "wait": // a cancel does not end it
		time.Sleep(time.Duration(st.MS) * time.Millisecond)
	case "until": // a file is there
		for _, err := os.Stat(st.Path); err != nil; _, err = os.Stat(st.Path) {
			time.Sleep(5 * time.Millisecond)
		}
	case "until-cancelled":
		<-cancelled
	case "stall":
		time.Sleep(time.Hour) // a select without cases would be a deadlock that Go ends
	case "stdout":
		s.flood(st.Bytes)
	case "stderr": // without a line break
		_, _ = io.CopyN(os.Stderr, zeros{}, int64(st.Bytes))
	case "stderr-lines":
		for n := 0; n < st.Bytes; n += len(noise) {
			_, _ = os.Stderr.WriteString(noise)
		}
	case "exit":
		os.Exit(st.Code)
	case "say": // to stderr
		_, _ = os.Stderr.WriteString(st.Text)
	case "kill": // this process; a shell takes its place, since Go turns signals into ends of its own
		dieBy(st.Code)
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
	case "deaf": // takes no more input
		s.deaf.Store(true)
	case "linger": // a grandchild in a session of its own
		cmd := exec.Command(os.Args[0], "linger", "fork")
		if err := cmd.Run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	case "bomb": // for a time, at most 8 that hop and 2⁷ that stay
		startBomb(time.Duration(st.MS) * time.Millisecond)
	case "hog": // memory, until the kernel says no
		if os.Getppid() != 1 {
			fmt.Fprintln(os.Stderr, "not in a container: the memory is everybody's")
			return false
		}
		for hoard := [][]byte{}; ; {
			hoard = append(hoard, bytes.Repeat([]byte("m"), 8<<20))
		}
	default:
		return s.attack(st)
	}
	return true
}

// attack turns on what the sandbox relies on: its init, its memory, its files.
func (s *server) attack(st step) bool {
	var err error
	switch st.Do {
	case "signal-init":
		err = signalInit(st.Code)
	case "limit-init":
		err = limitInit(st.Type, uint64(st.Bytes))
	case "fill": // every place that is not the workspace
		if os.Getppid() != 1 {
			err = errors.New("not in a container: the disk is everybody's")
			break
		}
		for _, dir := range []string{os.Getenv("HOME"), os.TempDir()} {
			for i := 0; err == nil; i++ {
				err = os.WriteFile(fmt.Sprintf("%s/fill-%d", dir, i), bytes.Repeat([]byte("f"), 4<<20), 0o600)
			}
			fmt.Fprintln(os.Stderr, err)
			err = nil
		}
	case "rotate": // the login, as a refresh of its token does
		auth := os.Getenv("CODEX_HOME") + "/auth.json"
		var b []byte
		if b, err = os.ReadFile(auth); err == nil {
			b = bytes.Replace(b, []byte("{"), fmt.Appendf(nil, `{"last_refresh":%q,`, time.Now().Format(time.RFC3339Nano)), 1)
			err = errors.Join(os.WriteFile(auth+".new", b, 0o600), os.Rename(auth+".new", auth))
		}
	default:
		err = fmt.Errorf("unknown step %q", st.Do)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return err == nil
}

// flood writes notifications that nobody asked for.
func (s *server) flood(n int) {
	line := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + strings.Repeat("y", 64<<10) + `"}}` + "\n"
	for ; n > 0; n -= len(line) {
		s.write(line)
	}
}

// noise is what a chatty command says.
const noise = "2026-01-02T03:04:05Z  INFO codex_core: this line says nothing, and there are many of it\n"

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
