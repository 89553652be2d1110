package proxy

import (
	"encoding/json"

	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/toolserver"
)

// Handshake reports whether a method is answered by the bridge when its command
// does not: without these answers a client gives the server up.
func Handshake(method string) bool {
	return method == "initialize" || method == "tools/list" || method == "ping"
}

// Initialize is the result of a bridge of the version for an initialize request
// that the command does not answer.
func Initialize(request []byte, version string) any {
	params, _ := mcp.Lookup(request, "params")
	type serverInfo struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	return struct {
		ProtocolVersion string          `json:"protocolVersion"`
		Capabilities    json.RawMessage `json:"capabilities"`
		ServerInfo      serverInfo      `json:"serverInfo"`
	}{toolserver.ProtocolVersion(params.Of(request)), json.RawMessage(`{"tools":{"listChanged":true}}`), serverInfo{"mcp-agents", version}}
}

// Response encodes an answer of ours, which must be of types that can always be
// encoded.
func Response(id mcp.ID, response *mcp.Response) []byte {
	return must(mcp.EncodeResponse(id, response))
}

// Notification encodes a notification of ours, whose params must be of types that
// can always be encoded.
func Notification(method string, params any) []byte {
	return must(mcp.EncodeNotification(method, params))
}

// Cancel is the line that tells a command to stop working on a request.
func Cancel(id mcp.ID, reason string) []byte {
	return append(Notification("notifications/cancelled", struct {
		RequestID mcp.ID `json:"requestId"`
		Reason    string `json:"reason"`
	}{id, reason}), '\n')
}

// ToolError is a tool's result that reports an error.
func ToolError(message string) any {
	type content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	return struct {
		Content []content `json:"content"`
		IsError bool      `json:"isError"`
	}{[]content{{"text", message}}, true}
}

// WithResult is an answer with another result and all its other bytes.
func WithResult(line, result []byte) []byte {
	at, _ := mcp.Lookup(line, "result")
	return mcp.Splice(line, mcp.Edit{At: at, With: result})
}

func must(body []byte, err error) []byte {
	if err != nil {
		panic("proxy: message cannot be encoded: " + err.Error())
	}
	return body
}
