package browser

import (
	"bytes"
	"strings"

	"mcpagents/internal/mcp"
)

// What is added to descriptions of tools that do not mean what they say when the
// browser is elsewhere.
const (
	timingNote = "mcp-agents remote-browser note: what this measures includes the way to a remote browser and its machine. " +
		"Use it as a diagnostic only, never as a gate."
	// UploadUnsupported is for a browser on another machine.
	UploadUnsupported = "mcp-agents remote-browser note: uploads are unsupported. The local path is handed to the remote Chromium as it " +
		"is, and nothing stages the file there."
	// UploadMounted is for a browser that sees the workspace.
	UploadMounted = "mcp-agents browser note: the browser sees the workspace read-only at the same path, and no other file of this machine."
)

// timed are the tools that measure time.
var timed = []string{"performance_start_trace", "performance_stop_trace", "performance_analyze_insight", "lighthouse_audit"}

// noteFor is what is added to the description of a tool, empty for most.
func (b *bridge) noteFor(tool string) string {
	if tool == "upload_file" {
		return b.cfg.UploadNote
	}
	for _, t := range timed {
		if t == tool {
			return timingNote
		}
	}
	return ""
}

// toolsOf returns the names in a tools/list result, nil if it is none.
func (b *bridge) toolsOf(result []byte) []string {
	at, ok := mcp.Lookup(result, "tools")
	if !ok {
		return nil
	}
	names := []string{}
	for _, e := range mcp.Elements(result, at) {
		tool := e.Of(result)
		at, _ := mcp.Lookup(tool, "name")
		if name, ok := mcp.Text(at.Of(tool)); ok {
			names = append(names, name)
		}
	}
	return names
}

// sawTools remembers the names in a tools/list result: of a page, beside those
// that are known. A result that holds no list says nothing.
func (b *bridge) sawTools(result []byte, page bool) {
	names := b.toolsOf(result)
	if names == nil {
		return
	}
	if b.tools == nil || !page {
		b.tools = map[string]bool{}
	}
	for _, n := range names {
		b.tools[n] = true
	}
}

// annotated returns a tools/list result with our notes. Everything else keeps
// its bytes.
func (b *bridge) annotated(result []byte) []byte {
	var edits []mcp.Edit
	at, _ := mcp.Lookup(result, "tools")
	for _, tool := range mcp.Elements(result, at) {
		members := mcp.Members(result, tool)
		name, _ := mcp.Find(members, "name")
		text, _ := mcp.Text(name.Value.Of(result))
		note := b.noteFor(text)
		if note == "" {
			continue
		}
		description, ok := mcp.Find(members, "description")
		said, isText := mcp.Text(description.Value.Of(result))
		switch {
		case strings.Contains(said, note):
		case ok && isText && said != "":
			edits = append(edits, mcp.Edit{At: description.Value, With: mcp.Encode(said + "\n\n" + note)})
		case ok:
			edits = append(edits, mcp.Edit{At: description.Value, With: mcp.Encode(note)})
		default:
			after := name.All.End
			edits = append(edits, mcp.Edit{At: mcp.Span{Start: after, End: after},
				With: append([]byte(`,"description":`), mcp.Encode(note)...)})
		}
	}
	return mcp.Splice(result, edits...)
}

// Tools is the last list of the downstream, or else the known one.
func (b *bridge) Tools() []byte {
	if b.list != nil {
		return b.list
	}
	return b.annotated(bytes.TrimSpace(knownTools))
}

// Listed remembers the tools of a list and adds our notes.
func (b *bridge) Listed(result []byte) []byte {
	if b.toolsOf(result) == nil {
		return result
	}
	b.sawTools(result, false)
	b.list = b.annotated(result)
	return b.list
}
