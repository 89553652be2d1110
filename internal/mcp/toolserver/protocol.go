package toolserver

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"mcpagents/internal/mcp"
)

// Names of the messages that this server knows.
const (
	methodInitialize = "initialize"
	methodPing       = "ping"
	methodListTools  = "tools/list"
	methodCallTool   = "tools/call"
	noteCancelled    = "notifications/cancelled"
	noteProgress     = "notifications/progress"
)

// protocolVersions are the versions that are spoken, newest first.
var protocolVersions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"}

// ProtocolVersion returns the client's version, from the params of its initialize,
// if it is spoken here. For any other value, also one of a wrong type, it offers the newest: whether that
// will do is for the client to decide, and an error would end the session.
func ProtocolVersion(params json.RawMessage) string {
	members, _ := object(params)
	version, _ := text(members["protocolVersion"])
	if slices.Contains(protocolVersions, version) {
		return version
	}
	return protocolVersions[0]
}

type initializeResult struct {
	ProtocolVersion string                    `json:"protocolVersion"`
	Capabilities    map[string]map[string]any `json:"capabilities"`
	ServerInfo      serverInfo                `json:"serverInfo"`
}

type serverInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type listedTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

type progressParams struct {
	Token    json.RawMessage `json:"progressToken"`
	Progress int64           `json:"progress"`
	Message  string          `json:"message"`
}

// callParams are the parameters of tools/call.
type callParams struct {
	name      string
	arguments json.RawMessage
	token     json.RawMessage // as written; nil: no progress wanted
}

// parseCall reads the parameters of tools/call. A progress token that is neither
// a string nor a finite number is none: it cannot be echoed in a way that its
// sender would know again, and the call itself is fine.
func parseCall(params json.RawMessage) (callParams, *mcp.Error) {
	members, _ := object(params)
	name, ok := text(members["name"])
	if !ok {
		return callParams{}, invalidParams("name must be a string")
	}
	call := callParams{name: name, arguments: json.RawMessage("{}")}
	if arguments, given := members["arguments"]; given {
		if arguments[0] != '{' {
			return callParams{}, invalidParams("arguments must be an object")
		}
		call.arguments = arguments
	}
	meta, _ := object(members["_meta"])
	if token := meta["progressToken"]; usableToken(token) {
		call.token = token
	}
	return call, nil
}

func usableToken(raw json.RawMessage) bool {
	switch id := mcp.ParseID(raw); id.Kind {
	case mcp.StringID:
		return true
	case mcp.NumberID:
		_, err := strconv.ParseFloat(string(raw), 64)
		return err == nil // 1e999 is infinite to most readers
	}
	return false
}

// cancelledID returns the id that a cancel notification names.
func cancelledID(params json.RawMessage) mcp.ID {
	members, _ := object(params)
	return mcp.ParseID(members["requestId"])
}

func invalidParams(problem string) *mcp.Error {
	return &mcp.Error{Code: mcp.CodeInvalidParams, Message: "Invalid params: " + problem}
}

// object returns the members of a JSON object. Decoding into a map and not into
// a struct keeps names exact: encoding/json takes "Name" for "name" in a struct.
func object(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil, false
	}
	return members, members != nil
}

// text returns the value of a JSON string.
func text(raw json.RawMessage) (string, bool) {
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil {
		return "", false
	}
	return *s, true
}

// marshal is json.Marshal that leaves <, > and & as they are.
func marshal(value any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte{'\n'}), nil
}
