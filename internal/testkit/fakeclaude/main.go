// Command fakeclaude plays Claude Code, and under the name agy Google's CLI, in tests:
// it answers as it is told. The prompt is its script, a JSON array of steps such
// as [{"do":"event","type":"assistant"},{"do":"result","text":"ok"}]. A prompt
// that is no array is answered with itself.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

func main() {
	args := os.Args[1:]
	switch {
	case len(args) == 1 && args[0] == "--version":
		fmt.Println("2.1.197 (Claude Code)")
	case len(args) == 2 && args[0] == "linger":
		linger(args[1])
	case filepath.Base(os.Args[0]) == "agy":
		agy(args)
	default:
		claude(args)
	}
}

// cli is one run.
type cli struct {
	stream bool   // of JSON, in and out
	agy    bool   // plain text
	stdin  string // so far
	prompt string

	interrupted chan struct{}
	ended       chan struct{} // the input
	mu          sync.Mutex    // guards stdin
}

func claude(args []string) {
	c := &cli{stream: slices.Contains(args, "--input-format"), interrupted: make(chan struct{}), ended: make(chan struct{})}
	if !c.stream {
		b, _ := io.ReadAll(os.Stdin)
		c.stdin, c.prompt = string(b), string(b)
		close(c.ended)
		c.play()
		return
	}
	in := bufio.NewReader(os.Stdin)
	first, err := in.ReadString('\n')
	c.stdin = first
	if err != nil {
		fmt.Fprintln(os.Stderr, "no prompt")
		os.Exit(1)
	}
	var m struct {
		Message struct {
			Content string `json:"content"`
		} `json:"message"`
	}
	_ = json.Unmarshal([]byte(first), &m)
	c.prompt = m.Message.Content
	go c.listen(in)
	c.play()
	select { // more prompts may come
	case <-c.ended:
	case <-c.interrupted:
	}
}

// listen hears interrupts until the end of the input.
func (c *cli) listen(in *bufio.Reader) {
	defer close(c.ended)
	for {
		line, err := in.ReadString('\n')
		c.mu.Lock()
		c.stdin += line
		c.mu.Unlock()
		if strings.Contains(line, `"interrupt"`) {
			close(c.interrupted)
		}
		if err != nil {
			return
		}
	}
}

func agy(args []string) {
	c := &cli{agy: true, interrupted: make(chan struct{}), ended: make(chan struct{})}
	if i := slices.Index(args, "-p"); i >= 0 && i+1 < len(args) {
		c.prompt = args[i+1]
	}
	b, _ := io.ReadAll(os.Stdin) // one that stays open holds it for ever, as it does the real one
	c.stdin = string(b)
	c.play()
}
