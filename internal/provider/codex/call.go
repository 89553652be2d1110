package codex

import (
	"encoding/json"
	"fmt"

	"mcpagents/internal/agent/job"
	"mcpagents/internal/mcp"
)

// call is a tools/call of a tool that we describe. Its message is parsed once,
// when it comes.
type call struct {
	tool    *tool
	message []byte
	at      mcp.Span        // the arguments in the message; empty if there are none
	members []mcp.Member    // of the arguments
	token   json.RawMessage // for progress; nil if there is none
}

// callOf returns the call in a message, nil if it calls none of our tools.
func (c catalog) callOf(message []byte, env mcp.Envelope) *call {
	if env.Method != "tools/call" {
		return nil
	}
	at, _ := mcp.Lookup(message, "params")
	params := mcp.Members(message, at)
	name, _ := mcp.Find(params, "name")
	called, ok := mcp.Text(name.Value.Of(message))
	t := c.tool(called)
	if !ok || t == nil {
		return nil
	}
	arguments, _ := mcp.Find(params, "arguments")
	parsed := newCall(t, message, arguments.Value)
	if meta, ok := mcp.Find(params, "_meta"); ok {
		token, _ := mcp.Find(mcp.Members(message, meta.Value), "progressToken")
		parsed.token = token.Value.Of(message)
	}
	return parsed
}

// newCall is the call of a tool with the arguments at within message.
func newCall(t *tool, message []byte, at mcp.Span) *call {
	return &call{tool: t, message: message, at: at, members: mcp.Members(message, at)}
}

// under is the same call of another tool as a message of ours with the id.
func (c *call) under(id string, t *tool) *call {
	head := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":%q,"arguments":`, id, t.name)
	move := func(s mcp.Span) mcp.Span {
		by := len(head) - c.at.Start
		return mcp.Span{Start: s.Start + by, End: s.End + by}
	}
	moved := &call{tool: t, at: move(c.at)}
	moved.message = append(append(head, c.at.Of(c.message)...), `}}`...)
	for _, m := range c.members {
		moved.members = append(moved.members, mcp.Member{Name: m.Name, All: move(m.All), Value: move(m.Value)})
	}
	return moved
}

// raw returns an argument as it was written, and whether it was given.
func (c *call) raw(name string) (json.RawMessage, bool) {
	m, ok := mcp.Find(c.members, name)
	return m.Value.Of(c.message), ok
}

// text returns an argument that is a string, else an empty one.
func (c *call) text(name string) string {
	raw, _ := c.raw(name)
	s, _ := mcp.Text(raw)
	return s
}

// number returns an argument that is a count, else 0.
func (c *call) number(name string) int {
	raw, _ := c.raw(name)
	n, _ := job.Codex.Wording.Number(raw)
	return n
}
