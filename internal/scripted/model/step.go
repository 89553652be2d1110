package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Limits of a step's numbers. They keep a typing error in a script from
// holding a suite for days or filling memory.
const (
	maxStallSeconds  = 24 * 60 * 60
	maxSlowDeltas    = 100_000
	maxSlowMillis    = 60_000
	maxMegabyteBytes = 64 << 20
)

// Step is what the model does with one request. Exactly one pointer is set.
// Exec, ApplyPatch and Tool call a tool and the turn goes on; every other step
// ends it, because the CLI sends no tool output after it.
type Step struct {
	// Answer is the final message of the turn.
	Answer *string `json:"answer,omitempty"`
	// Exec runs a command with the CLI's shell tool.
	Exec *Exec `json:"exec,omitempty"`
	// ApplyPatch is the text of a patch for the CLI's apply_patch tool.
	ApplyPatch *string `json:"apply_patch,omitempty"`
	// Tool calls any other tool of the CLI by its name.
	Tool *ToolCall `json:"tool,omitempty"`
	// Stall starts the response and then says nothing.
	Stall *Stall `json:"stall,omitempty"`
	// Slow streams an answer in small pieces.
	Slow *Slow `json:"slow,omitempty"`
	// Status answers with an HTTP error instead of a stream.
	Status *Status `json:"status,omitempty"`
	// Cut ends the stream after its first event.
	Cut *Cut `json:"cut,omitempty"`
	// Megabyte answers with a large text.
	Megabyte *Megabyte `json:"megabyte,omitempty"`

	// Commentary is what the model says before a tool call, in the same
	// response; only steps that call a tool may have one.
	Commentary string `json:"commentary,omitempty"`
}

// Exec is a shell command.
type Exec struct {
	Cmd string `json:"cmd"`
	// Long keeps the tool call open while the command runs (30 s with the
	// classic tools, 10 min in code mode) instead of leaving it in the background.
	Long bool `json:"long,omitempty"`
	// Escalate asks the CLI to run the command outside its own sandbox, which
	// raises an approval request unless the approval policy forbids it.
	Escalate bool `json:"escalate,omitempty"`
}

// ToolCall is a call of a tool such as Claude Code's Read.
type ToolCall struct {
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"` // a JSON object
}

// Stall is a response that starts and then stays silent.
type Stall struct {
	// Seconds of silence before a short answer; 0 means until the client
	// leaves. Codex 0.153.4 keeps the stream of a cancelled turn open until its
	// process ends, so an open stall does not prove a running turn.
	Seconds int `json:"seconds,omitempty"`
}

// Slow is an answer streamed one delta per interval.
type Slow struct {
	Deltas     int `json:"deltas"`
	IntervalMS int `json:"interval_ms"`
}

func (s Slow) interval() time.Duration { return time.Duration(s.IntervalMS) * time.Millisecond }

// Status is an HTTP error. Without a body the server writes an error object
// of the vendor's shape.
type Status struct {
	Code int             `json:"code"`
	Body json.RawMessage `json:"body,omitempty"`
}

// Cut is a stream that ends without its terminal event.
type Cut struct{}

// Megabyte is an answer of exactly Bytes bytes; see [Megabyte.Text].
type Megabyte struct {
	Bytes int `json:"bytes"`
	// Multibyte fills it with characters of two to four bytes.
	Multibyte bool `json:"multibyte,omitempty"`
}

// Text is the answer: a repeated numbered pattern, so that a lost or doubled
// piece shows, cut to exactly m.Bytes bytes of valid UTF-8.
func (m Megabyte) Text() string {
	filler := " scripted model filler"
	if m.Multibyte {
		filler = " é語🙂ß漢"
	}
	var b strings.Builder
	b.Grow(m.Bytes + 64)
	for n := 0; b.Len() < m.Bytes; n++ {
		line := fmt.Sprintf("%08d%s\n", n, filler)
		if room := m.Bytes - b.Len(); len(line) > room {
			// Digits are single bytes, so they end the text at any length.
			line = strings.Repeat("9", room)
		}
		b.WriteString(line)
	}
	return b.String()
}

// callsTool reports whether the turn goes on after the step.
func (s Step) callsTool() bool { return s.Exec != nil || s.ApplyPatch != nil || s.Tool != nil }

// kind names the step as the scenario file does; "" if none or several are set.
func (s Step) kind() string {
	kinds := []struct {
		set  bool
		name string
	}{
		{s.Answer != nil, "answer"}, {s.Exec != nil, "exec"}, {s.ApplyPatch != nil, "apply_patch"},
		{s.Tool != nil, "tool"},
		{s.Stall != nil, "stall"}, {s.Slow != nil, "slow"}, {s.Status != nil, "status"},
		{s.Cut != nil, "cut"}, {s.Megabyte != nil, "megabyte"},
	}
	found := ""
	for _, k := range kinds {
		switch {
		case k.set && found != "":
			return ""
		case k.set:
			found = k.name
		}
	}
	return found
}

// validate reports the first thing that makes the step impossible to play.
func (s Step) validate() error {
	if s.Commentary != "" && !s.callsTool() {
		return errors.New("commentary goes before a tool call: only exec, apply_patch and tool may have one")
	}
	switch s.kind() {
	case "answer", "cut":
		return nil
	case "exec":
		if strings.TrimSpace(s.Exec.Cmd) == "" || strings.ContainsRune(s.Exec.Cmd, 0) {
			return errors.New("exec: cmd must be a command without NUL bytes")
		}
		return nil
	case "apply_patch":
		if strings.TrimSpace(*s.ApplyPatch) == "" {
			return errors.New("apply_patch: the patch is empty")
		}
		return nil
	case "tool":
		var input map[string]json.RawMessage
		if strings.TrimSpace(s.Tool.Name) == "" || json.Unmarshal(s.Tool.Input, &input) != nil || input == nil {
			return errors.New("tool: needs a name and an object as input")
		}
		return nil
	case "stall":
		return inRange("stall: seconds", s.Stall.Seconds, 0, maxStallSeconds)
	case "slow":
		return errors.Join(inRange("slow: deltas", s.Slow.Deltas, 1, maxSlowDeltas),
			inRange("slow: interval_ms", s.Slow.IntervalMS, 0, maxSlowMillis))
	case "status":
		return inRange("status: code", s.Status.Code, 400, 599)
	case "megabyte":
		return inRange("megabyte: bytes", s.Megabyte.Bytes, 1, maxMegabyteBytes)
	}
	return errors.New("a step has exactly one of answer, exec, apply_patch, tool, stall, slow, status, cut, megabyte")
}

func inRange(what string, n, low, high int) error {
	if n < low || n > high {
		return fmt.Errorf("%s is %d, must be %d to %d", what, n, low, high)
	}
	return nil
}
