// Package measure times what an MCP server on stdio costs before it can be
// used: from the start of its program to its list of tools.
package measure

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Startup is what one start cost.
type Startup struct {
	Initialize time.Duration // from the start of the program to the answer of initialize
	ToolList   time.Duration // ... and to that of tools/list
	// CPU is the user and system time of the program and its descendants until
	// then. What an engine runs for them is not theirs.
	CPU time.Duration
	// Memory is the sum of the peak resident sizes of the program and of those
	// descendants that live then, in bytes. Outside Linux CPU and Memory are
	// those until the end, Memory that of the largest process.
	Memory int64
	Tools  int // how many are listed
}

// maxEnd is what a server may take to end once its input has ended.
const maxEnd = 10 * time.Second

const (
	askInitialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"startup","version":"1"}}}` + "\n"
	askTools      = `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}` + "\n"
)

// Start starts a server, asks for its tools and ends it by the end of its input.
// The error names what the server did not do, with the end of its stderr.
func Start(ctx context.Context, cmd *exec.Cmd) (s Startup, err error) {
	var stderr tail
	cmd.Stderr = &stderr
	cmd.WaitDelay = time.Second // what the server left behind may hold it open
	in, err := cmd.StdinPipe()
	if err != nil {
		return s, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return s, err
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return s, err
	}
	kill := func() {
		_ = cmd.Process.Kill()
		_ = out.Close() // what it left behind may hold it open
	}
	stop := context.AfterFunc(ctx, kill)
	defer stop()
	r := bufio.NewReaderSize(out, 1<<20)
	err = s.handshake(begin, in, r)
	if err == nil {
		s.CPU, s.Memory = treeOf(cmd.Process.Pid)
	}
	_ = in.Close()
	end := time.AfterFunc(maxEnd, kill)
	_, _ = io.Copy(io.Discard, r)
	_ = cmd.Wait() // how it ends does not matter here
	end.Stop()
	if s.CPU == 0 && cmd.ProcessState != nil {
		s.CPU, s.Memory = cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), maxResident(cmd.ProcessState)
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("no list of tools in time: %w", context.Cause(ctx))
	}
	if err != nil {
		return Startup{}, fmt.Errorf("%s: %w%s", cmd.Path, err, stderr.said())
	}
	return s, nil
}

func (s *Startup) handshake(begin time.Time, in io.Writer, r *bufio.Reader) error {
	if _, err := io.WriteString(in, askInitialize); err != nil {
		return fmt.Errorf("send initialize: %w", err)
	}
	if _, err := answer(r, 1); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	s.Initialize = time.Since(begin)
	if _, err := io.WriteString(in, askTools); err != nil {
		return fmt.Errorf("send tools/list: %w", err)
	}
	result, err := answer(r, 2)
	if err != nil {
		return fmt.Errorf("tools/list: %w", err)
	}
	s.ToolList = time.Since(begin)
	var list struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(result, &list); err != nil {
		return fmt.Errorf("tools/list: %w", err)
	}
	s.Tools = len(list.Tools)
	return nil
}

// answer reads until the answer with an id; what else a server says is skipped.
func answer(r *bufio.Reader, id int) (json.RawMessage, error) {
	for {
		line, err := r.ReadBytes('\n')
		var m struct {
			ID     any             `json:"id"`
			Method string          `json:"method"`
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		if json.Unmarshal(line, &m) == nil && m.ID == float64(id) && m.Method == "" {
			if m.Error != nil {
				return nil, fmt.Errorf("the server answers with an error: %s", m.Error)
			}
			return m.Result, nil
		}
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the server ended without an answer")
		}
		if err != nil {
			return nil, err
		}
	}
}

// Median is, for each figure by itself, the middle one of several starts.
func Median(all []Startup) Startup {
	return Startup{
		Initialize: middle(all, func(s Startup) time.Duration { return s.Initialize }),
		ToolList:   middle(all, func(s Startup) time.Duration { return s.ToolList }),
		CPU:        middle(all, func(s Startup) time.Duration { return s.CPU }),
		Memory:     middle(all, func(s Startup) int64 { return s.Memory }),
		Tools:      middle(all, func(s Startup) int { return s.Tools }),
	}
}

func middle[T time.Duration | int64 | int](all []Startup, of func(Startup) T) T {
	var values []T
	for _, s := range all {
		values = append(values, of(s))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	const most = 2000
	t.b = append(t.b, p...)
	t.b = t.b[max(0, len(t.b)-most):]
	return len(p), nil
}

func (t *tail) said() string {
	if text := bytes.TrimSpace(t.b); len(text) > 0 {
		return "\nits stderr ends:\n" + strings.ToValidUTF8(string(text), "\uFFFD")
	}
	return ""
}
