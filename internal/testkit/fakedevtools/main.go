// Command fakedevtools is a chrome-devtools-mcp for tests. Its tool "look" says
// which browser answers at --browserUrl; its tool "run" takes steps, so that a
// test says in its call how the server is to misbehave.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// step is one thing to do: wait (ms), mark (make the file text), until (wait for
// the file text), say (text on stdout), warn (text on stderr), stall (never
// answer), exit (code), flood (bytes in one result). Files are named from the
// working directory.
type step struct {
	Do    string
	Text  string
	MS    int
	Code  int
	Bytes int
}

type message struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Name            string
		ProtocolVersion string
		Arguments       struct{ Steps []step }
	}
}

const tools = `{"tools":[{"name":"look","description":"Which browser is there.","inputSchema":{"type":"object"}},` +
	`{"name":"run","description":"Does steps.","inputSchema":{"type":"object"}},` +
	`{"name":"upload_file","description":"Uploads.","inputSchema":{"type":"object"}}]}`

func main() {
	address := ""
	for i, a := range os.Args {
		if a == "--browserUrl" && i+1 < len(os.Args) {
			address = os.Args[i+1]
		}
	}
	fmt.Fprintln(os.Stderr, "fakedevtools", strings.Join(os.Args[1:], " "))
	calls := make(chan message, 64)
	go func() { // one after another, as the real one's
		for m := range calls {
			call(m, address)
		}
	}()
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		var m message
		if json.Unmarshal(line, &m) == nil && m.ID != nil && m.Method != "" {
			if m.Method == "tools/call" {
				calls <- m
			} else {
				answer(m)
			}
		}
		if err != nil {
			return // as the real one at the end of its input
		}
	}
}

func answer(m message) {
	switch m.Method {
	case "initialize":
		respond(m.ID, fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"fakedevtools","version":"1"}}`,
			m.Params.ProtocolVersion))
	case "tools/list":
		respond(m.ID, tools)
	default:
		respond(m.ID, "{}")
	}
}

func call(m message, address string) {
	if m.Params.Name == "run" {
		run(m)
		return
	}
	text := look(address)
	respondText(m.ID, text, strings.HasPrefix(text, "Could not"))
}

// look asks the control port, without keeping the connection.
func look(address string) string {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	resp, err := client.Get(address + "/json/version")
	if err != nil {
		return "Could not connect to Chrome. Check if Chrome is running.\nCause: Failed to fetch browser webSocket URL from " + address + "/json/version"
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}

func run(m message) {
	for _, s := range m.Params.Arguments.Steps {
		switch s.Do {
		case "wait":
			time.Sleep(time.Duration(s.MS) * time.Millisecond)
		case "mark":
			_ = os.WriteFile(s.Text, nil, 0o644)
		case "until":
			for !exists(s.Text) {
				time.Sleep(5 * time.Millisecond)
			}
		case "say":
			fmt.Print(s.Text)
		case "warn":
			fmt.Fprintln(os.Stderr, s.Text)
		case "stall":
			select {}
		case "exit":
			os.Exit(s.Code)
		case "flood":
			respondText(m.ID, strings.Repeat("x", s.Bytes), false)
			return
		}
	}
	respondText(m.ID, "done", false)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func respondText(id json.RawMessage, text string, failed bool) {
	b, _ := json.Marshal(map[string]any{"content": []any{map[string]string{"type": "text", "text": text}}, "isError": failed})
	respond(id, string(b))
}

func respond(id json.RawMessage, result string) {
	fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
}
