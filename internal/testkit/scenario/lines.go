package scenario

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

const ms = time.Millisecond

// Secret stands in prompts, and in what a model says: it must not leak.
const Secret = "S3NTINEL"

// Lines of a client, without their line feeds.
const (
	InitializeLine = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	ListLine       = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	CallLine       = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"hi","cwd":"/ws","sandbox":"read-only"}}}`
	BadCallLine    = `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"` + Secret + `","cwd":"rel","sandbox":"read-only","config":{"a":"` + Secret + `"}}}}`
)

// Lines of Codex, with $id for the id of the request.
const (
	NativeInitialize = `{"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"codex-mcp-server","version":"0.153.4"}}}` + "\n"
	NativeAnswer     = `{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":"héllo \u00e9"}],"structuredContent":{"threadId":"t","content":"x"}}}` + "\n"
)

// Lead begins the developer instructions that a goal becomes.
const Lead = `Persistent objective for this thread. Pursue it across turns unless it is superseded:`

//go:embed testdata/native-tools-list.json
var nativeList string

//go:embed testdata/curated-tools-list.json
var curatedList string

// NativeList is the answer of codex mcp-server 0.153.4 to tools/list, as recorded,
// and CuratedList what the bridge makes of it, both without a line feed.
func NativeList(id any) string  { return listFor(nativeList, id) }
func CuratedList(id any) string { return listFor(curatedList, id) }

func listFor(list string, id any) string {
	return strings.Replace(strings.TrimSuffix(list, "\n"), `"id":2`, fmt.Sprintf(`"id":%v`, id), 1)
}

// WithID puts an id in the place of $id.
func WithID(line string, id any) string { return strings.ReplaceAll(line, "$id", fmt.Sprint(id)) }

// Event is an event of a request, whose id is JSON, in thread T1.
func Event(id any, kind, fields string) string {
	if fields != "" {
		fields = "," + fields
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"codex/event","params":{"_meta":{"requestId":%v,"threadId":"T1"},"id":"0","msg":{"type":%q%s}}}`+"\n", id, kind, fields)
}

// TurnCall calls codex, with a progress token if that is not empty.
func TurnCall(id any, token string) string {
	meta := ""
	if token != "" {
		meta = `"_meta":{"progressToken":` + token + `},`
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":"tools/call","params":{%s"name":"codex","arguments":{"prompt":"%s","cwd":"/ws","sandbox":"workspace-write"}}}`, id, meta, Secret)
}

// ToolLine calls a tool with arguments, which are JSON.
func ToolLine(id any, tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, arguments)
}

// CancelLine cancels a request.
func CancelLine(id any) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%v}}`, id)
}

// PingLine is a ping, and Pong its answer.
func PingLine(id any) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":"ping"}`, id) }
func Pong(id any) string     { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":{}}`, id) }

// Native is Codex's answer to a turn, FailedTurn one that says that it failed.
func Native(id any, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":{"content":[{"type":"text","text":%q}],"structuredContent":{"threadId":"T1","content":%q}}}`+"\n", id, text, text)
}

func FailedTurn(id any, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":{"content":[{"type":"text","text":%q}],"isError":true,"structuredContent":{"threadId":"T1","content":%q}}}`+"\n", id, text, text)
}

// Unauthorized is the event that says that the login was refused.
func Unauthorized(id any) string {
	return Event(id, "error", `"message":"`+Secret+`","codex_error_info":"unauthorized"`)
}

// Aborted is the error of a request that was open when the bridge ended.
func Aborted(id any, reason string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"error":{"code":-32001,"message":"mcp-agents: codex pass-through aborted before responding (%s); `+
		`the request was still open: edits that it made are in the working tree, verify it before you repeat the request."}}`, id, reason)
}

// Job are arguments of a job's tools: its id and more.
func Job(id, more string) string { return `{"jobId":"` + id + `"` + more + `}` }

// encode is text as JSON, without the escapes that HTML needs.
func encode(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text)
	return strings.TrimSuffix(b.String(), "\n")
}

// Message is what a client got.
type Message struct {
	ID     json.RawMessage
	Method string
	Params struct {
		ProgressToken json.RawMessage
		Progress      int
		Message       string
	}
	Result *struct {
		Content           []struct{ Text string }
		StructuredContent map[string]any
		IsError           bool
	}
	Error *struct {
		Code    int
		Message string
	}
}

// These see a message that is none, or of another kind, as empty: the assertion
// then says what is missing.
func (m Message) problem() string {
	if m.Error == nil {
		return ""
	}
	return m.Error.Message
}

func (m Message) code() int {
	if m.Error == nil {
		return 0
	}
	return m.Error.Code
}

func (m Message) text() string {
	if m.Result == nil || len(m.Result.Content) == 0 {
		return ""
	}
	return m.Result.Content[0].Text
}

// failed says that the answer is the result of something that went wrong.
func (m Message) failed() bool { return m.Result != nil && m.Result.IsError }

func (m Message) structured() map[string]any {
	if m.Result == nil {
		return nil
	}
	return m.Result.StructuredContent
}

// field is a member of a structured answer.
func (m Message) field(name string) any { return m.structured()[name] }

// rows are the turns of a peek.
func (m Message) rows() []map[string]any {
	turns, _ := m.field("turns").([]any)
	var all []map[string]any
	for _, r := range turns {
		row, _ := r.(map[string]any)
		all = append(all, row)
	}
	return all
}

// told returns the texts of progress notifications.
func told(all []Message) []string {
	var texts []string
	for _, m := range all {
		if m.Method == "notifications/progress" {
			texts = append(texts, m.Params.Message)
		}
	}
	return texts
}
