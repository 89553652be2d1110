package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// How long a tool call of a long command stays open, in milliseconds. The
// shell tool itself takes at most 30 s; code mode waits for its script.
const (
	longYieldMS      = 30_000
	codeModeYieldMS  = 600_000
	shellTimeoutMS   = 600_000
	escalationReason = "the scripted model asks to run this outside the sandbox"
)

// outputItem is one item of a response: a message or a tool call.
type outputItem struct {
	Type      string        `json:"type"`
	ID        string        `json:"id"`
	Role      string        `json:"role,omitempty"`
	Phase     string        `json:"phase,omitempty"`
	Content   []contentPart `json:"content,omitzero"`
	CallID    string        `json:"call_id,omitempty"`
	Name      string        `json:"name,omitempty"`
	Namespace string        `json:"namespace,omitempty"`
	Status    string        `json:"status,omitempty"`
	Input     string        `json:"input,omitempty"`
	Arguments string        `json:"arguments,omitempty"`
}

type contentPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func messageItem(n int, text string) outputItem {
	return outputItem{Type: "message", ID: fmt.Sprintf("msg_%d", n), Role: "assistant",
		Content: []contentPart{{Type: "output_text", Text: text}}}
}

func customCall(n int, tool declaredTool, input string) outputItem {
	return outputItem{Type: "custom_tool_call", ID: fmt.Sprintf("ctc_%d", n), CallID: fmt.Sprintf("call_%d", n),
		Name: tool.name, Namespace: tool.namespace, Status: "completed", Input: input}
}

func functionCall(n int, tool declaredTool, arguments any) (outputItem, error) {
	args, err := encodeJSON(arguments)
	if err != nil {
		return outputItem{}, err
	}
	return outputItem{Type: "function_call", ID: fmt.Sprintf("fc_%d", n), CallID: fmt.Sprintf("call_%d", n),
		Name: tool.name, Namespace: tool.namespace, Arguments: string(args)}, nil
}

// shellArguments are those of exec_command, in both of its forms.
type shellArguments struct {
	Cmd         string `json:"cmd"`
	YieldTimeMS int    `json:"yield_time_ms,omitempty"`
	escalation
}

type escalation struct {
	SandboxPermissions string `json:"sandbox_permissions,omitempty"`
	Justification      string `json:"justification,omitempty"`
}

func (e Exec) escalation() escalation {
	if !e.Escalate {
		return escalation{}
	}
	return escalation{SandboxPermissions: "require_escalated", Justification: escalationReason}
}

// shellItem calls the shell tool that the request declares. Codex declares it
// by model: as a JavaScript tool `exec` with the shell nested in it ("code
// mode"), or as one of three functions.
func (t toolSet) shellItem(n int, e Exec) (outputItem, error) {
	args := shellArguments{Cmd: e.Cmd, escalation: e.escalation()}
	if e.Long {
		args.YieldTimeMS = longYieldMS
	}
	if tool, ok := t.find("custom", "exec"); ok {
		return codeModeItem(n, tool, "exec_command", args, e.Long)
	}
	if tool, ok := t.find("function", "exec_command"); ok {
		return functionCall(n, tool, args)
	}
	if tool, ok := t.find("function", "shell_command"); ok {
		return functionCall(n, tool, struct {
			Command   string `json:"command"`
			TimeoutMS int    `json:"timeout_ms"`
			escalation
		}{e.Cmd, shellTimeoutMS, e.escalation()})
	}
	if tool, ok := t.find("function", "shell"); ok {
		return functionCall(n, tool, struct {
			Command []string `json:"command"`
			escalation
		}{[]string{"bash", "-lc", e.Cmd}, e.escalation()})
	}
	return outputItem{}, errors.New("the script runs a command, but the request declares none of the tools exec (custom), exec_command, shell_command, shell")
}

// patchItem applies a patch: by apply_patch where it is declared, else by the
// command of that name, which Codex intercepts in its shell tool.
func (t toolSet) patchItem(n int, patch string) (outputItem, error) {
	if tool, ok := t.find("custom", "exec"); ok {
		return codeModeItem(n, tool, "apply_patch", patch, false)
	}
	if tool, ok := t.find("custom", "apply_patch"); ok {
		return customCall(n, tool, patch), nil
	}
	if tool, ok := t.find("function", "apply_patch"); ok {
		return functionCall(n, tool, map[string]string{"input": patch})
	}
	return t.shellItem(n, Exec{Cmd: patchCommand(patch)})
}

// patchCommand is a here-document whose delimiter is no line of the patch.
func patchCommand(patch string) string {
	end := "EOF"
	for strings.Contains("\n"+patch+"\n", "\n"+end+"\n") {
		end += "_"
	}
	return "apply_patch <<'" + end + "'\n" + strings.TrimSuffix(patch, "\n") + "\n" + end + "\n"
}

// codeModeItem is a script that calls one nested tool and shows its result.
func codeModeItem(n int, tool declaredTool, nested string, argument any, long bool) (outputItem, error) {
	literal, err := encodeJSON(argument) // JSON with U+2028 escaped is JavaScript
	if err != nil {
		return outputItem{}, err
	}
	pragma := ""
	if long {
		// The comment is read by code mode; without it the script is left in
		// the background after a few seconds.
		pragma = fmt.Sprintf("// @exec: {\"yield_time_ms\": %d}\n", codeModeYieldMS)
	}
	return customCall(n, tool, fmt.Sprintf("%sconst r = await tools.%s(%s);\ntext(JSON.stringify(r));", pragma, nested, literal)), nil
}

// encodeJSON leaves <, > and & as they are, so that transcripts stay readable.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// callItem calls a function tool by its name, or in code mode a nested tool,
// which is where Codex has those of MCP servers (as mcp__SERVER__TOOL, with _
// for what no JavaScript name has). Their list is not in the request.
func (t toolSet) callItem(n int, call ToolCall) (outputItem, error) {
	if tool, ok := t.find("function", call.Name); ok {
		return functionCall(n, tool, call.Input)
	}
	if tool, ok := t.find("custom", "exec"); ok && nestedName.MatchString(call.Name) {
		return codeModeItem(n, tool, call.Name, call.Input, true)
	}
	return outputItem{}, fmt.Errorf("the request declares no function %s", call.Name)
}

var nestedName = regexp.MustCompile(`^[A-Za-z_]\w*$`)
