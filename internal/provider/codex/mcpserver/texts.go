package mcpserver

import (
	"fmt"
	"strconv"
)

// texts is all that callers are told of events while a turn runs. What is not
// in the table is not told: final answers, reasoning, prompts, commands and
// their output, arguments of tools, queries and paths never are.
var texts = map[string]func(*Event) string{
	"task_started":                   says("started"),
	"plan_update":                    planned,
	"exec_command_begin":             says("running a command"),
	"exec_command_end":               commandEnded,
	"patch_apply_begin":              changing,
	"patch_apply_end":                changed,
	"mcp_tool_call_begin":            calling("calling "),
	"mcp_tool_call_end":              calling("finished calling "),
	"web_search_begin":               says("searching the web"),
	"web_search_end":                 says("web search finished"),
	"view_image_tool_call":           says("inspecting an image"),
	"image_generation_begin":         says("generating an image"),
	"image_generation_end":           says("image generation finished"),
	"sub_agent_activity":             says("subagent activity"),
	"collab_agent_spawn_begin":       says("starting a subagent"),
	"collab_agent_spawn_end":         says("subagent started"),
	"collab_agent_interaction_begin": says("coordinating with a subagent"),
	"collab_agent_interaction_end":   says("subagent coordination finished"),
	"collab_waiting_begin":           says("waiting for a subagent"),
	"collab_waiting_end":             says("subagent wait finished"),
	"collab_resume_begin":            says("resuming a subagent"),
	"collab_resume_end":              says("resuming after subagent work"),
	"collab_close_begin":             says("closing a subagent"),
	"collab_close_end":               says("subagent closed"),
}

// Text returns what is told of an event, empty for nothing. What the agent says
// itself is Speech's business.
func Text(e *Event) string {
	if text := texts[e.Type]; text != nil {
		return text(e)
	}
	return ""
}

func says(text string) func(*Event) string { return func(*Event) string { return text } }

func planned(e *Event) string {
	for _, s := range e.Plan {
		if s.Status == "in_progress" && s.Step != "" {
			return "working on: " + s.Step
		}
	}
	return ""
}

func commandEnded(e *Event) string {
	code, err := strconv.Atoi(string(e.ExitCode))
	if err != nil {
		return "command finished"
	}
	return fmt.Sprintf("command finished (exit %d)", code)
}

func changing(e *Event) string {
	if e.Changes == nil {
		return "applying changes"
	}
	return fmt.Sprintf("applying changes to %d file(s)", len(e.Changes))
}

func changed(e *Event) string {
	if e.Success != nil && !*e.Success {
		return "change application failed"
	}
	return "changes applied"
}

func calling(lead string) func(*Event) string {
	return func(e *Event) string {
		if e.Invocation.Server == "" || e.Invocation.Tool == "" {
			return lead + "an MCP tool"
		}
		return lead + e.Invocation.Server + "/" + e.Invocation.Tool
	}
}
