// Package mcpserver reads what codex mcp-server writes: its events of the native
// protocol, in the terms of package agent.
package mcpserver

import (
	"encoding/json"

	"mcpagents/internal/agent"
)

// Event is what is read of an event of Codex. Members of another type than
// expected are as if they were absent.
type Event struct {
	Type string `json:"type"`

	CallID           string                     `json:"call_id"`
	Changes          map[string]json.RawMessage `json:"changes"`
	Delta            string                     `json:"delta"`
	ErrorInfo        json.RawMessage            `json:"codex_error_info"`
	ExitCode         json.RawMessage            `json:"exit_code"`
	Invocation       Invocation                 `json:"invocation"`
	Item             Item                       `json:"item"`
	ItemID           string                     `json:"item_id"`
	LastAgentMessage string                     `json:"last_agent_message"`
	Message          string                     `json:"message"`
	Phase            string                     `json:"phase"`
	Plan             []Step                     `json:"plan"`
	Success          *bool                      `json:"success"`
}

// Item is a part of a turn's conversation.
type Item struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	Phase   string `json:"phase"`
	Message string `json:"message"`
	Content []Part `json:"content"`
}

// Part is a part of an item's content.
type Part struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// Invocation names a tool of an MCP server that Codex calls.
type Invocation struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
}

// Step is a step of a plan.
type Step struct {
	Step   string `json:"step"`
	Status string `json:"status"`
}

// Parse reads the event in msg, whose type is known. Of types that mean nothing
// here it reads no more than that: they can be long.
func Parse(kind string, msg []byte) *Event {
	e := &Event{}
	if known(kind) {
		// What does not fit its type stays empty; the rest is read anyway.
		_ = json.Unmarshal(msg, e)
	}
	e.Type = kind
	return e
}

func known(kind string) bool {
	_, ok := texts[kind]
	return ok || ends(kind) != agent.Alive || kind == "error" || speaks(kind)
}

// ends returns how an event of the kind ends its turn, agent.Alive if it does not.
func ends(kind string) agent.Kind {
	switch kind {
	case "task_complete", "turn_complete":
		return agent.Completed
	case "turn_aborted":
		return agent.Aborted
	}
	return agent.Alive
}

// Unauthorized reports whether the event states that the login is not accepted.
func (e *Event) Unauthorized() bool {
	return e.Type == "error" && string(e.ErrorInfo) == `"unauthorized"`
}

// In returns what the event means for its turn. said is what the agent has said
// in that turn; it takes the event in.
func (e *Event) In(said *Speech) agent.Event {
	out := agent.Event{Kind: ends(e.Type), Name: e.Type, Answer: e.LastAgentMessage}
	out.Commentary, out.Status = said.Hear(e)
	if out.Status == "" {
		out.Status = Text(e)
	}
	switch {
	case e.Type == "exec_command_begin":
		out.Kind, out.Command = agent.CommandStarted, e.CallID
	case e.Type == "exec_command_end":
		out.Kind, out.Command = agent.CommandEnded, e.CallID
	case e.Unauthorized():
		out.Kind = agent.Unauthorized
	}
	return out
}
