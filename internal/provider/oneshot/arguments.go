package oneshot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// Schema is the input of a tool that waits. It is open: callers put in what
// other tools take, and that is ignored.
func Schema(command string, timeout time.Duration) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"prompt":{"type":"string","description":"Prompt for %s; `+
		`unsupported extra arguments are ignored."},"timeout_ms":{"type":"integer","minimum":1,"description":"Time limit in `+
		`milliseconds; the default is %dms."}},"required":["prompt"],"additionalProperties":true}`, command, timeout.Milliseconds()))
}

// Arguments are those of a tool that waits.
type Arguments struct {
	Prompt  string
	Timeout time.Duration // not more than 0: there is no time at all
	Ignored []string
}

// ParseArguments never refuses: what it cannot use it leaves out. timeout is
// that of a call that names no whole number of milliseconds.
func ParseArguments(raw json.RawMessage, timeout time.Duration) Arguments {
	a := Arguments{Timeout: timeout}
	for _, m := range Members(raw) {
		switch m.Name {
		case "prompt":
			a.Prompt = Stringify(m.Value)
		case "timeout_ms":
			if ms, err := strconv.ParseFloat(string(m.Value), 64); err == nil && ms == math.Trunc(ms) {
				a.Timeout = time.Duration(max(min(ms, maxMillis), -1)) * time.Millisecond
			}
		default:
			a.Ignored = append(a.Ignored, m.Name)
		}
	}
	return a
}

// maxMillis keeps a time in milliseconds within a time.Duration: 200 years.
const maxMillis = 200 * 365 * 24 * 60 * 60 * 1000

// Member is one member of a JSON object.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Members returns the members of an object in their order, each once, with its
// last value.
func Members(raw json.RawMessage) []Member {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var list []Member
	for dec.More() {
		name, err := dec.Token()
		m := Member{}
		if err != nil || dec.Decode(&m.Value) != nil {
			return list
		}
		m.Name, _ = name.(string)
		if i := slices.IndexFunc(list, func(o Member) bool { return o.Name == m.Name }); i >= 0 {
			list[i] = m
			continue
		}
		list = append(list, m)
	}
	return list
}

// Stringify is the text of a value: a string's own, nothing for an absent one
// or null, otherwise its JSON.
func Stringify(raw json.RawMessage) string {
	var s *string
	switch err := json.Unmarshal(raw, &s); {
	case len(raw) == 0, err == nil && s == nil:
		return ""
	case err == nil:
		return *s
	}
	return string(raw)
}

// StartFailure is the text for a call whose turn could not be run, or the error
// of the context and its cause when nobody waits for a text any more.
func StartFailure(ctx context.Context, program string, err error) (string, error) {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrTimeout):
		return program + " failed: killed by SIGKILL\nIts time was over before it could start.", nil
	case cause != nil:
		return "", fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	if _, ok := errors.AsType[*DirError](err); ok {
		return "Failed to prepare isolated working directory: " + err.Error(), nil
	}
	if _, ok := errors.AsType[*StartError](err); ok {
		return "Failed to start " + program + ": " + err.Error(), nil
	}
	return program + " failed: " + err.Error(), nil
}
