package codex

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"mcpagents/internal/agent/job"
	"mcpagents/internal/mcp"
)

// The native tools that callers see with our descriptions and arguments, and
// the tools that are ours.
const (
	toolCodex      = "codex"
	toolReply      = "codex-reply"
	toolStart      = "codex-start"
	toolReplyStart = "codex-reply-start"
	toolStatus     = "codex-status"
	toolCommentary = "codex-commentary"
	toolResult     = "codex-result"
	toolCancel     = "codex-cancel"
	toolPeek       = "codex-peek"
)

// DefaultModels are the models that a call may name. The first is the default.
var DefaultModels = []string{"gpt-5.6-sol", "gpt-5.6-terra"}

// kind says which check an argument's value must pass.
type kind uint8

const (
	kindString kind = iota
	kindID          // a string that is not blank
	kindPath        // an absolute path that the workspace rule accepts
	kindEnum
	kindBoolean
	kindCount // an integer from 0
	kindWait  // milliseconds, at most job.MaxWait
)

// argument is one row of a tool's contract: its schema and its validation both
// come from here.
type argument struct {
	name        string
	kind        kind
	enum        []string
	required    bool
	description string
}

// tool is the contract of one tool.
type tool struct {
	name        string
	description string
	arguments   []argument
	// native is the tool that runs the turn of this one, empty if it runs none.
	native string
}

// argument returns the row of the name, nil if the tool has none.
func (t *tool) argument(name string) *argument {
	i := slices.IndexFunc(t.arguments, func(a argument) bool { return a.name == name })
	if i < 0 {
		return nil
	}
	return &t.arguments[i]
}

// names returns the names of the arguments, or of the required ones only.
func (t *tool) names(requiredOnly bool) []string {
	names := []string{}
	for _, a := range t.arguments {
		if a.required || !requiredOnly {
			names = append(names, a.name)
		}
	}
	return names
}

// schema is the tool's inputSchema. It states no defaults: clients that fill
// them in would turn a default of the server into an explicit choice.
func (t *tool) schema() []byte {
	var b bytes.Buffer
	b.WriteString(`{"type":"object","properties":{`)
	for i, a := range t.arguments {
		if i > 0 {
			b.WriteByte(',')
		}
		property := struct {
			Type        string   `json:"type"`
			Enum        []string `json:"enum,omitempty"`
			Minimum     *int     `json:"minimum,omitempty"`
			Maximum     *int     `json:"maximum,omitempty"`
			Description string   `json:"description"`
		}{Type: "string", Enum: a.enum, Description: a.description}
		switch a.kind {
		case kindBoolean:
			property.Type = "boolean"
		case kindCount, kindWait:
			property.Type, property.Minimum = "integer", new(0)
			if a.kind == kindWait {
				property.Maximum = new(int(job.MaxWait / time.Millisecond))
			}
		}
		b.Write(mcp.Encode(a.name))
		b.WriteByte(':')
		b.Write(mcp.Encode(property))
	}
	b.WriteString(`},"required":`)
	b.Write(mcp.Encode(t.names(true)))
	b.WriteString(`,"additionalProperties":false}`)
	return b.Bytes()
}

// catalog is the set of tools that we describe.
type catalog []*tool

func (c catalog) tool(name string) *tool {
	i := slices.IndexFunc(c, func(t *tool) bool { return t.name == name })
	if i < 0 {
		return nil
	}
	return c[i]
}

// nativeTools is what codex mcp-server 0.153.4 lists, less what we replace. It
// is for clients that ask before a Codex is there.
const nativeTools = `{"tools":[` +
	`{"name":"codex","title":"Codex","description":"","inputSchema":{},"outputSchema":` + nativeOutput + `},` +
	`{"name":"codex-reply","title":"Codex Reply","description":"","inputSchema":{},"outputSchema":` + nativeOutput + `}]}`

const nativeOutput = `{"type":"object","properties":{"threadId":{"type":"string"},"content":{"type":"string"}},` +
	`"required":["threadId","content"]}`

// local is the tools/list result that is given without a Codex.
func (c catalog) local() []byte {
	return c.curate([]byte(nativeTools), mcp.Span{Start: 0, End: len(nativeTools)})
}

// curate replaces description and inputSchema of the tools that we describe in
// the tools/list result at within frame. All other bytes stay: the metadata of
// those tools, other tools, and a frame without any of ours.
func (c catalog) curate(frame []byte, result mcp.Span) []byte {
	list, ok := mcp.Find(mcp.Members(frame, result), "tools")
	if !ok {
		return frame
	}
	var edits []mcp.Edit
	for _, entry := range mcp.Elements(frame, list.Value) {
		fields := mcp.Members(frame, entry)
		name, _ := mcp.Find(fields, "name")
		if t := c.tool(mcp.Unquote(name.Value.Of(frame))); t != nil {
			edits = append(edits, describe(entry, fields, t)...)
		}
	}
	if edits == nil {
		return frame
	}
	return mcp.Splice(frame, append(edits, c.additions(frame, list.Value)...)...)
}

// additions returns the edit that puts our own tools behind those in the list,
// each if a tool that it serves is there and it is not itself.
func (c catalog) additions(frame []byte, list mcp.Span) []mcp.Edit {
	there := map[string]bool{}
	for _, entry := range mcp.Elements(frame, list) {
		name, _ := mcp.Find(mcp.Members(frame, entry), "name")
		there[mcp.Unquote(name.Value.Of(frame))] = true
	}
	var more []byte
	for _, t := range c {
		serves := t.native != "" && there[t.native] || t.native == "" && (there[toolCodex] || there[toolReply])
		if there[t.name] || !serves {
			continue
		}
		more = append(more, ',')
		more = append(more, mcp.Encode(struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"inputSchema"`
		}{t.name, t.description, t.schema()})...)
	}
	return []mcp.Edit{{At: mcp.Span{Start: list.End - 1, End: list.End - 1}, With: more}}
}

// describe returns the edits that make the entry of a tools/list ours.
func describe(entry mcp.Span, fields []mcp.Member, t *tool) []mcp.Edit {
	ours := []struct {
		name string
		text []byte
	}{{"description", mcp.Encode(t.description)}, {"inputSchema", t.schema()}}
	var edits []mcp.Edit
	var missing []byte
	for _, o := range ours {
		found := false
		for _, f := range fields {
			if f.Name == o.name { // all of them, should one be repeated
				edits, found = append(edits, mcp.Edit{At: f.Value, With: o.text}), true
			}
		}
		if !found {
			missing = append(append(append(append(missing, ','), mcp.Encode(o.name)...), ':'), o.text...)
		}
	}
	slices.SortFunc(edits, func(a, b mcp.Edit) int { return a.At.Start - b.At.Start })
	if missing != nil { // there is a name to put them behind
		edits = append(edits, mcp.Edit{At: mcp.Span{Start: entry.End - 1, End: entry.End - 1}, With: missing})
	}
	return edits
}
