package codex

import (
	"bytes"
	"strings"
	"unicode"

	"mcpagents/internal/mcp"
)

// The texts that carry a goal to the model.
const (
	goalLead     = "Persistent objective for this thread. Pursue it across turns unless it is superseded:"
	goalReminder = "Reminder — standing objective for this thread: "
)

// transform holds what the server adds to calls.
type transform struct {
	goal string // of every thread that names none
	// agents says that Codex has the agents.enabled setting, which versions
	// before 0.145.0 refuse.
	agents bool
}

// apply returns the message of a valid call with the arguments that Codex's own
// tool takes, and a line for the log for each change. A call that asks for
// nothing of ours comes back as the same bytes; otherwise only the arguments
// object is written anew, from the raw text of the members that stay.
func (t transform) apply(c *call) ([]byte, []string) {
	toolName, message := c.tool.name, c.message
	var out arguments
	var logs []string
	goal, origin := t.goalOf(c)
	for _, m := range c.members {
		raw := m.All.Of(message)
		switch m.Name {
		case "model_reasoning_effort", "allow_subagents", "goal":
			out.changed = true
			continue
		case "prompt":
			if toolName == toolReply && goal != "" {
				raw = remind(message, m, goal)
				out.changed = true
			}
		}
		out.raw = append(out.raw, raw)
	}
	if toolName == toolCodex {
		logs = t.configure(&out, c)
		if goal != "" {
			out.add("developer-instructions", mcp.Encode(goalLead+"\n"+goal))
			logs = append(logs, "injected "+origin+" goal into developer-instructions")
		}
	} else if goal != "" {
		logs = append(logs, "injected "+origin+" goal into codex-reply prompt")
	}
	if _, stripped := c.raw("goal"); stripped && goal == "" {
		logs = append(logs, "stripped per-call goal arg")
	}
	if !out.changed {
		return message, nil
	}
	return mcp.Splice(message, mcp.Edit{At: c.at, With: out.object()}), logs
}

// goalOf returns the goal that counts, trimmed, and whose it is. A key in the
// call decides, even with a blank value.
func (t transform) goalOf(c *call) (goal, origin string) {
	if _, ok := c.raw("goal"); ok {
		return trim(c.text("goal")), "per-call"
	}
	return trim(t.goal), "server"
}

// configure adds the config overrides that the call asks for.
func (t transform) configure(out *arguments, c *call) (logs []string) {
	var config arguments
	if effort, ok := c.raw("model_reasoning_effort"); ok {
		config.add("model_reasoning_effort", effort)
		logs = append(logs, "applied per-session reasoning effort "+c.text("model_reasoning_effort"))
	}
	if allow, _ := c.raw("allow_subagents"); string(allow) == "true" {
		config.add("features.multi_agent", []byte("true"))
		overrides := "features.multi_agent=true"
		if t.agents {
			config.add("agents.enabled", []byte("true"))
			overrides += ", agents.enabled=true"
		}
		logs = append(logs, "enabled native Codex subagents for this session ("+overrides+")")
	}
	if config.changed {
		out.add("config", config.object())
	}
	return logs
}

// remind returns the prompt member with a reminder of the goal before the
// prompt, whose own text keeps its escapes.
func remind(message []byte, prompt mcp.Member, goal string) []byte {
	lead := mcp.Encode(goalReminder + goal + "\n\n")
	out := bytes.Clone(message[prompt.All.Start:prompt.Value.Start])
	out = append(out, lead[:len(lead)-1]...)
	return append(out, prompt.Value.Of(message)[1:]...)
}

// arguments is an object in the making: the raw text of its members.
type arguments struct {
	raw     [][]byte
	changed bool
}

func (a *arguments) add(name string, value []byte) {
	a.raw = append(a.raw, append(append(mcp.Encode(name), ':'), value...))
	a.changed = true
}

func (a *arguments) object() []byte {
	return append(append([]byte{'{'}, bytes.Join(a.raw, []byte{','})...), '}')
}

// trim cuts white space as JavaScript's trim does, which clients' authors know.
func trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == '\uFEFF' })
}
