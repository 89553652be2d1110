package toolserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"
)

// Tool is one entry of tools/list and the function behind it.
type Tool struct {
	// Name is what callers use: at most 32 characters, so that the name that
	// clients build from it ("mcp__", a server name of 20, "__") stays within
	// their limit of 60.
	Name        string
	Description string

	// InputSchema is a JSON Schema, sent as it is. Its root must be a plain
	// object: model APIs refuse a whole session for a combinator there.
	InputSchema json.RawMessage

	// Call does the work. Calls run concurrently. Its context ends, with
	// [ErrCancelled], [ErrClientGone] or the reason of the server's stop as
	// cause, when nobody waits for the result any more; Call then cleans up and
	// returns. An error is answered as a result marked as an error with the
	// error's text, so that the model sees it.
	Call func(ctx context.Context, call Call) (Result, error)

	// Heartbeat, if set, gives the progress message for a call that has shown
	// none for [HeartbeatInterval]. elapsed counts from the start of the call.
	Heartbeat func(elapsed time.Duration) string

	// whileStopping lets the tool answer when others are refused.
	whileStopping bool
}

// Call is one use of a tool.
type Call struct {
	// Arguments is a JSON object as the caller wrote it, {} if it sent none.
	Arguments json.RawMessage

	// Report takes progress messages. It is nil when the caller gave no token:
	// such a caller sees nothing until the result.
	Report func(message string)
}

// Progress shows message to the caller if it asked for progress. It never
// blocks: when messages come faster than one each [ProgressInterval], or the
// client does not read, the latest wins.
func (c Call) Progress(message string) {
	if c.Report != nil {
		c.Report(message)
	}
}

// Result is what a tool answers.
type Result struct {
	// Text is for the model and repeats every fact of Structured, which some
	// clients do not show.
	Text string

	// Structured, if not nil, is sent as structuredContent and must encode to a
	// JSON object.
	Structured any

	// IsError marks a failure of the tool's work.
	IsError bool
}

type textContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// MarshalJSON returns the result object of tools/call.
func (r Result) MarshalJSON() ([]byte, error) {
	return marshal(struct {
		Content    []textContent `json:"content"`
		Structured any           `json:"structuredContent,omitempty"`
		IsError    bool          `json:"isError,omitempty"`
	}{[]textContent{{"text", r.Text}}, r.Structured, r.IsError})
}

func failure(text string) Result { return Result{Text: text, IsError: true} }

// PingTool returns the tool that shows that the server is reachable. It does no
// work and answers even while the server stops.
func PingTool() Tool {
	return Tool{
		Name:        "ping",
		Description: "Check the connection to this server. Answers pong at once, without starting the agent.",
		InputSchema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{}}`),
		Call: func(context.Context, Call) (Result, error) {
			return Result{Text: "pong"}, nil
		},
		whileStopping: true,
	}
}

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,32}$`)

// notAtRoot are the schema keywords that clients or model APIs refuse there.
var notAtRoot = []string{"oneOf", "anyOf", "allOf", "not", "if", "$ref", "enum"}

// check says why clients would refuse the tool.
func (t Tool) check() error {
	if !toolName.MatchString(t.Name) {
		return fmt.Errorf("tool name %q: must be 1 to 32 letters, digits, _ or -", t.Name)
	}
	if t.Call == nil {
		return fmt.Errorf("tool %s: has no function", t.Name)
	}
	if err := checkSchema(t.InputSchema); err != nil {
		return fmt.Errorf("tool %s: input schema: %w", t.Name, err)
	}
	return nil
}

func checkSchema(schema json.RawMessage) error {
	root, ok := object(schema)
	if !ok {
		return errors.New("must be a JSON object")
	}
	if string(root["type"]) != `"object"` {
		return errors.New(`root must have type "object"`)
	}
	if _, ok := object(root["properties"]); !ok {
		return errors.New("root must have properties")
	}
	for _, keyword := range notAtRoot {
		if _, ok := root[keyword]; ok {
			return fmt.Errorf("root must not have %s: check such rules in code", keyword)
		}
	}
	return nil
}
