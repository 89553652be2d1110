package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// maxToolDepth bounds namespaces inside namespaces; Codex uses one level.
const maxToolDepth = 8

// responsesRequest is the part of a Responses API request that scripts need.
type responsesRequest struct {
	items []inputItem
	tools toolSet
}

type inputItem struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	CallID  string          `json:"call_id"`
	Output  json.RawMessage `json:"output"`
	// Tools is set in an additional_tools item, where Codex declares its tools
	// for models that work in code mode.
	Tools []toolDeclaration `json:"tools"`
}

type toolDeclaration struct {
	Type  string            `json:"type"`
	Name  string            `json:"name"`
	Tools []toolDeclaration `json:"tools"`
}

// parseResponsesRequest reads a request body. Only streaming requests are
// accepted: nothing that this server answers has another form.
func parseResponsesRequest(body []byte) (*responsesRequest, error) {
	var wire struct {
		Stream bool              `json:"stream"`
		Input  json.RawMessage   `json:"input"`
		Tools  []toolDeclaration `json:"tools"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return nil, fmt.Errorf("request body is not a Responses API request: %w", err)
	}
	if !wire.Stream {
		return nil, errors.New(`only streaming requests are served: set "stream": true`)
	}
	items, err := parseInput(wire.Input)
	if err != nil {
		return nil, err
	}
	req := &responsesRequest{items: items}
	if err := req.tools.add(wire.Tools, "", 0); err != nil {
		return nil, err
	}
	for _, item := range items {
		if item.Type != "additional_tools" {
			continue
		}
		if err := req.tools.add(item.Tools, "", 0); err != nil {
			return nil, err
		}
	}
	return req, nil
}

// parseInput takes both forms of the API: one string, or a list of items.
func parseInput(raw json.RawMessage) ([]inputItem, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] == '"' {
		return []inputItem{{Type: "message", Role: "user", Content: raw}}, nil
	}
	var items []inputItem
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, fmt.Errorf("input must be a string or a list of items: %w", err)
	}
	return items, nil
}

// conversation reduces the request to what scripts look at. A tool call that
// was answered twice counts once: Codex repeats outputs of calls it resumed.
func (r *responsesRequest) conversation() conversation {
	var c conversation
	answered := map[string]bool{}
	for _, item := range r.items {
		switch {
		case item.isUserMessage():
			text := contentText(item.Content)
			if isHarnessContext(text) {
				continue
			}
			c = conversation{prompt: text}
			clear(answered)
		case strings.HasSuffix(item.Type, "_output"):
			answered[item.CallID] = true
			c.toolOutputs = len(answered)
			c.lastOutput = contentText(item.Output)
		}
	}
	return c
}

// isUserMessage also takes the API's short form, which has no type.
func (i inputItem) isUserMessage() bool {
	return i.Role == "user" && (i.Type == "message" || i.Type == "")
}

// isHarnessContext tells what the CLI itself says in the user's name (such as
// <environment_context>…</environment_context>) from a prompt: it would
// otherwise restart the script in the middle of a turn.
func isHarnessContext(text string) bool {
	text = strings.TrimSpace(text)
	rest, ok := strings.CutPrefix(text, "<")
	if !ok || strings.Contains(text, "[[") {
		return false
	}
	end := strings.IndexAny(rest, " >\n")
	return end > 0 && strings.HasSuffix(text, "</"+rest[:end]+">")
}

// contentText joins the texts of a content value: a string, or a list of
// parts. Anything else (an image, an object) is shown as its JSON.
func contentText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) == nil {
		texts := make([]string, len(parts))
		for i, p := range parts {
			texts[i] = p.Text
		}
		return strings.Join(texts, "\n")
	}
	return string(raw)
}

// declaredTool is one tool with the namespace that a call to it must name.
type declaredTool struct{ namespace, name, kind string }

// toolSet is every tool that a request declares, in order.
type toolSet []declaredTool

func (t *toolSet) add(tools []toolDeclaration, namespace string, depth int) error {
	if depth > maxToolDepth {
		return fmt.Errorf("tool namespaces are nested deeper than %d", maxToolDepth)
	}
	for _, tool := range tools {
		if tool.Type == "namespace" {
			if err := t.add(tool.Tools, tool.Name, depth+1); err != nil {
				return err
			}
			continue
		}
		name := tool.Name
		if name == "" {
			name = tool.Type // built-in tools such as local_shell have no name
		}
		*t = append(*t, declaredTool{namespace: namespace, name: name, kind: tool.Type})
	}
	return nil
}

func (t toolSet) find(kind, name string) (declaredTool, bool) {
	for _, tool := range t {
		if tool.kind == kind && tool.name == name {
			return tool, true
		}
	}
	return declaredTool{}, false
}
