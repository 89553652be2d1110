package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Error codes of JSON-RPC 2.0 section 5.1, and the one server error in use:
// a call that ended without an answer, whose outcome is therefore unknown.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeAborted        = -32001
)

// Error is a JSON-RPC error object. Data is left out when nil.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// Response is what a handler answers: Error if set, else Result. A nil Result
// is written as null.
type Response struct {
	Result any
	Error  *Error
}

// EncodeResponse returns the message that answers id. An absent id, or one of a
// type that JSON-RPC does not know, is answered as null.
func EncodeResponse(id ID, r *Response) ([]byte, error) {
	member, value := "result", r.Result
	if r.Error != nil {
		member, value = "error", r.Error
	}
	return encode(`{"jsonrpc":"2.0","id":`+string(id.wire())+`,"`+member+`":`, value)
}

// EncodeNotification returns a notification. Nil params are left out.
func EncodeNotification(method string, params any) ([]byte, error) {
	head, err := encode(`{"jsonrpc":"2.0","method":`, method)
	if err != nil || params == nil {
		return head, err
	}
	return encode(string(head[:len(head)-1])+`,"params":`, params)
}

// encode returns head, value as JSON and a closing brace. HTML characters stay
// as they are: tool output is full of them, and nothing here meets a browser.
func encode(head string, value any) ([]byte, error) {
	buf := bytes.NewBufferString(head)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	buf.Truncate(buf.Len() - 1) // the encoder's line feed
	buf.WriteByte('}')
	return buf.Bytes(), nil
}
