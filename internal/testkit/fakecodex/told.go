package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
)

// controlVariable names the socket of a test that tells this Codex what to do
// and hears what it has read.
const controlVariable = "FAKECODEX_CONTROL"

// told is a Codex that does nothing by itself but answer initialize. Its
// controller sends steps, one JSON object a line, and gets a line for each that
// is done, {"done":true}, and for each piece of the input, {"got":base64}.
type told struct {
	*server
	mu      sync.Mutex // of control
	control net.Conn
}

// beTold serves until the input ends.
func beTold(s *server, path string) error {
	control, err := net.Dial("unix", path)
	if err != nil {
		return fmt.Errorf("%s: %w", controlVariable, err)
	}
	t := &told{server: s, control: control}
	go t.obey() // until the end of the process
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if s.deaf.Load() {
			select {} // with what it has read; only its controller ends it
		}
		t.report(map[string]any{"got": line})
		var m message
		if json.Unmarshal(line, &m) == nil && m.Method == "initialize" {
			s.handle(m)
		}
		if err == io.EOF {
			return nil
		}
	}
}

func (t *told) obey() {
	lines := json.NewDecoder(t.control)
	for {
		var st step
		if lines.Decode(&st) != nil {
			return
		}
		t.step(message{}, st, nil)
		t.report(map[string]any{"done": true})
	}
}

func (t *told) report(v any) {
	line, _ := json.Marshal(v)
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = t.control.Write(append(line, '\n'))
}
