package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
)

// message is what a client sends.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string `json:"name"`
		RequestID any    `json:"requestId"`
		Arguments struct {
			Prompt   string `json:"prompt"`
			ThreadID string `json:"threadId"`
		} `json:"arguments"`
	} `json:"params"`
}

// server is one conversation.
type server struct {
	mu   sync.Mutex // of stdout
	out  *bufio.Writer
	runs sync.WaitGroup

	deaf    atomic.Bool // nothing more is read
	cancels sync.Map    // key of an id → chan struct{} closed when it is cancelled
}

const tools = `[{"name":"codex","title":"Codex","description":"native","inputSchema":{"type":"object","properties":{"prompt":{"type":"string"}}},` +
	`"outputSchema":{"type":"object"}},{"name":"codex-reply","description":"native","inputSchema":{"type":"object"}}]`

// serve answers until the input ends and every call has.
func serve() {
	s := &server{out: bufio.NewWriter(os.Stdout)}
	if path := os.Getenv(controlVariable); path != "" {
		if err := beTold(s, path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for !s.deaf.Load() {
		line, err := in.ReadBytes('\n')
		var m message
		if json.Unmarshal(line, &m) == nil {
			s.handle(m)
		}
		if err == io.EOF {
			break
		}
	}
	s.runs.Wait()
}

func (s *server) handle(m message) {
	switch m.Method {
	case "initialize":
		s.result(m.ID, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"fakecodex","version":"0.153.4"}}`)
	case "tools/list":
		s.result(m.ID, `{"tools":`+tools+`}`)
	case "ping":
		s.result(m.ID, `{}`)
	case "notifications/cancelled":
		if c, ok := s.cancels.LoadAndDelete(fmt.Sprintf("%T %v", m.Params.RequestID, m.Params.RequestID)); ok {
			close(c.(chan struct{}))
		}
	case "tools/call":
		var id any
		_ = json.Unmarshal(m.ID, &id)
		cancelled := make(chan struct{})
		s.cancels.Store(fmt.Sprintf("%T %v", id, id), cancelled)
		s.runs.Go(func() { s.run(m, cancelled) })
	}
}

func (s *server) result(id json.RawMessage, result string) {
	s.write(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + result + "}\n")
}

// write puts text on stdout, whole or partial messages alike.
func (s *server) write(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.out.WriteString(text)
	_ = s.out.Flush()
}
