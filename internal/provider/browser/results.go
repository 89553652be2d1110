package browser

import (
	"mcpagents/internal/mcp"
	"mcpagents/internal/provider/browser/lease"
)

// Codes of the results that are ours.
const (
	codeUnavailable  = "browser_unavailable"
	codeDevServer    = "browser_dev_server_unreachable"
	codeMinIO        = "browser_minio_unreachable"
	codeProvisioning = "browser_provisioning_failed"
	codeReplaced     = "browser_lease_replaced"
	codeReserved     = "reserved_request_id"
)

// prefix begins what this program says in place of the downstream.
const prefix = "mcp-agents: "

// notExecuted ends the text of a call that never reached the downstream, and
// notReplayed that of one which did.
const (
	notExecuted = "; the call was not executed. The next call gets another browser."
	notReplayed = ". The call may have had its effect, and the state of the browser is gone: look at what it changed before you " +
		"go on, and never blindly replay it."
)

// result is a tool's result that says what went wrong.
type result struct {
	Content    []textPart `json:"content"`
	Structured fault      `json:"structuredContent"`
	IsError    bool       `json:"isError"`
}

type textPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// fault is the part of such a result that programs read.
type fault struct {
	Code           string `json:"code"`
	Message        string `json:"message"`
	FailClosed     bool   `json:"failClosed,omitempty"`
	StateLost      bool   `json:"stateLost,omitempty"`
	OutcomeUnknown *bool  `json:"outcomeUnknown,omitempty"`
	Action         string `json:"action,omitempty"`
}

// faulty is a result whose text is that of the fault.
func faulty(f fault) result { return result{[]textPart{{"text", prefix + f.Message}}, f, true} }

func provisioningFailed(text string) result {
	return faulty(fault{Code: codeProvisioning, Message: text, FailClosed: true})
}

// unavailableResult passes on what the lessor found.
func unavailableResult(e *lease.UnavailableError) result {
	code := codeDevServer
	switch e.Cause {
	case lease.NoBox:
		return faulty(fault{Code: codeUnavailable, Message: e.Text, FailClosed: true})
	case lease.MinIO:
		code = codeMinIO
	}
	return result{[]textPart{{"text", e.Text}}, fault{Code: code, Message: e.Text}, true}
}

func reservedID() result {
	return faulty(fault{Code: codeReserved, Message: "request ids that begin with " + questionIDs + " or " + initializeIDs + " are reserved"})
}

// replacedBefore is the result of a call that did not reach the downstream.
func replacedBefore(text string) result {
	no := false
	return faulty(fault{Code: codeReplaced, Message: text, FailClosed: true, StateLost: true, OutcomeUnknown: &no,
		Action: "reacquire_before_next_call"})
}

func replacedFault(why string) fault {
	yes := true
	return fault{Code: codeReplaced, Message: why + notReplayed, StateLost: true, OutcomeUnknown: &yes,
		Action: "inspect_state_never_blindly_replay"}
}

// replacedAfter is the result of a call that reached the downstream, with what
// it answered: that may say what happened. native is the result of the answer,
// nil if there is none.
func replacedAfter(native []byte, why string) []byte {
	f := replacedFault(why)
	content := []byte{'['}
	at, _ := mcp.Lookup(native, "content")
	for _, part := range mcp.Elements(native, at) {
		content = append(append(content, part.Of(native)...), ',')
	}
	content = append(append(content, mcp.Encode(textPart{"text", prefix + f.Message})...), ']')
	ours := mcp.Encode(f)
	structured := []byte{'{'}
	at, _ = mcp.Lookup(native, "structuredContent")
	for _, m := range mcp.Members(native, at) {
		if _, hidden := mcp.Lookup(ours, m.Name); !hidden {
			structured = append(append(structured, m.All.Of(native)...), ',')
		}
	}
	structured = append(structured, ours[1:]...)
	out := append([]byte(`{"content":`), content...)
	out = append(append(out, `,"structuredContent":`...), structured...)
	return append(out, `,"isError":true}`...)
}
