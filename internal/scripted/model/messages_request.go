package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// messagesRequest is the part of a Messages API request that scripts need.
type messagesRequest struct {
	model    string
	messages []userMessage
	count    int      // of all messages, those of the assistant too
	tools    []string // names, in order
}

// userMessage is one message of the user: text, or the results of tool calls.
type userMessage []contentBlock

type contentBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
}

// parseMessagesRequest reads a request body. Only streaming requests are
// accepted: nothing that this server answers has another form.
func parseMessagesRequest(body []byte) (*messagesRequest, error) {
	var wire struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return nil, fmt.Errorf("request body is not a Messages API request: %w", err)
	}
	if !wire.Stream {
		return nil, errors.New(`only streaming requests are served: set "stream": true`)
	}
	req := &messagesRequest{model: wire.Model, count: len(wire.Messages)}
	for i, m := range wire.Messages {
		if m.Role != "user" {
			continue
		}
		blocks, err := parseBlocks(m.Content)
		if err != nil {
			return nil, fmt.Errorf("messages[%d]: %w", i, err)
		}
		req.messages = append(req.messages, blocks)
	}
	for _, tool := range wire.Tools {
		req.tools = append(req.tools, tool.Name)
	}
	return req, nil
}

// parseBlocks takes both forms of the API: one string, or a list of blocks.
func parseBlocks(raw json.RawMessage) (userMessage, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] == '"' {
		return userMessage{{Type: "text", Text: contentText(raw)}}, nil
	}
	var blocks userMessage
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return nil, fmt.Errorf("content must be a string or a list of blocks: %w", err)
	}
	return blocks, nil
}

// conversation reduces the request to what scripts look at. A message with
// results of tools goes on with the turn, whatever the CLI says beside them.
func (r *messagesRequest) conversation() conversation {
	var c conversation
	answered := map[string]bool{}
	for _, m := range r.messages {
		results := false
		var texts []string
		for _, block := range m {
			switch {
			case block.Type == "tool_result":
				results = true
				answered[block.ToolUseID] = true
				c.toolOutputs = len(answered)
				c.lastOutput = contentText(block.Content)
			case block.Type == "text" && !isHarnessContext(block.Text):
				texts = append(texts, block.Text)
			}
		}
		if !results && len(texts) > 0 {
			c = conversation{prompt: strings.Join(texts, "\n")}
			clear(answered)
		}
	}
	return c
}

// toolUse is a call of a tool that the CLI declares.
type toolUse struct {
	Name  string
	Input any
}

// longBashMS is the time that a long command gets, the most that the tool takes.
const longBashMS = 600_000

// use turns a step into the call of a declared tool, or nil if it makes none.
func (r *messagesRequest) use(step Step) (*toolUse, error) {
	var use toolUse
	switch {
	case step.Exec != nil:
		input := map[string]any{"command": step.Exec.Cmd, "description": "as the script says"}
		if step.Exec.Long {
			input["timeout"] = longBashMS
		}
		use = toolUse{"Bash", input}
	case step.Tool != nil:
		// Undeclared ones are sent as well: what a CLI does with a call that it
		// has forbidden is what some tests look at.
		return &toolUse{step.Tool.Name, step.Tool.Input}, nil
	case step.ApplyPatch != nil:
		return nil, errors.New("the Messages API has no apply_patch: use exec or tool")
	default:
		return nil, nil
	}
	if !slices.Contains(r.tools, use.Name) {
		return nil, fmt.Errorf("the request declares no tool %s", use.Name)
	}
	return &use, nil
}
