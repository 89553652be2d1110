package codex

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// The native tools that callers see with our descriptions and arguments.
const (
	toolCodex = "codex"
	toolReply = "codex-reply"
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
			Description string   `json:"description"`
		}{"string", a.enum, a.description}
		if a.kind == kindBoolean {
			property.Type = "boolean"
		}
		b.Write(encode(a.name))
		b.WriteByte(':')
		b.Write(encode(property))
	}
	b.WriteString(`},"required":`)
	b.Write(encode(t.names(true)))
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

// newCatalog returns the tools for a list of models.
func newCatalog(models []string) catalog {
	prompt := argument{name: "prompt", kind: kindString, required: true,
		description: "What Codex shall do, in plain words."}
	goal := argument{name: "goal", kind: kindString}
	first, next := goal, goal
	first.description = "Standing objective that Codex pursues in every turn of this thread until it is superseded. " +
		"A blank text switches off a goal that the server sets."
	next.description = "Reminder of the standing objective, put before this prompt. It does not replace the goal that " +
		"the thread began with: start a new thread for that. A blank text switches off a goal that the server sets."
	return catalog{
		{toolCodex, codexDescription, []argument{
			prompt,
			{name: "cwd", kind: kindPath, required: true,
				description: "Absolute path of an existing directory inside a workspace root, in which Codex works."},
			{name: "sandbox", kind: kindEnum, required: true,
				enum: []string{"read-only", "workspace-write", "danger-full-access"},
				description: "What commands may do: read-only writes nothing, workspace-write writes below cwd and to " +
					"temporary directories, danger-full-access drops Codex's own sandbox."},
			{name: "model", kind: kindEnum, enum: models, description: modelDescription(models)},
			{name: "model_reasoning_effort", kind: kindEnum, enum: []string{"medium", "high", "xhigh", "max"},
				description: "How much the model reasons: medium is balanced, high is for complex work, xhigh for hard " +
					"problems, max is quality-first and slowest. The server's own setting counts when it is left out. " +
					"Replies inherit it."},
			{name: "allow_subagents", kind: kindBoolean,
				description: "Whether Codex may start subagents of its own in this thread (default false). Replies inherit it."},
			first,
		}},
		{toolReply, replyDescription, []argument{
			prompt,
			{name: "threadId", kind: kindID, required: true,
				description: "The threadId in the result of the codex call that began the thread. Threads live as long as this server."},
			next,
		}},
	}
}

const codexDescription = "Begins a Codex thread: Codex works on the prompt in cwd until it is done, and the result carries " +
	"its answer and the threadId for codex-reply. A call that was cancelled or timed out may have edited files: look at the " +
	"working tree before you repeat it."

const replyDescription = "Continues a Codex thread with another prompt, in the same directory and with the same sandbox, " +
	"model, reasoning effort and subagent choice as the call that began it."

// modelHints says what the models that we know are for.
var modelHints = map[string]string{
	"gpt-5.6-sol":   "for the most demanding work",
	"gpt-5.6-terra": "faster, for well-defined work",
}

func modelDescription(models []string) string {
	parts := make([]string, len(models))
	for i, m := range models {
		parts[i] = m
		if hint := modelHints[m]; hint != "" {
			parts[i] += " " + hint
		}
		if i == 0 {
			parts[i] += " (the default unless the server sets another)"
		}
	}
	return "The model of this thread: " + strings.Join(parts, "; ") + ". Replies inherit it."
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
	return c.curate([]byte(nativeTools), span{0, len(nativeTools)})
}

// curate replaces description and inputSchema of the tools that we describe in
// the tools/list result at within frame. All other bytes stay: the metadata of
// those tools, other tools, and a frame without any of ours.
func (c catalog) curate(frame []byte, result span) []byte {
	list, ok := find(members(frame, result), "tools")
	if !ok {
		return frame
	}
	var edits []edit
	for _, entry := range elements(frame, list.value) {
		fields := members(frame, entry)
		name, _ := find(fields, "name")
		if t := c.tool(unquote(name.value.of(frame))); t != nil {
			edits = append(edits, describe(entry, fields, t)...)
		}
	}
	if edits == nil {
		return frame
	}
	return splice(frame, edits)
}

// describe returns the edits that make the entry of a tools/list ours.
func describe(entry span, fields []member, t *tool) []edit {
	ours := []struct {
		name string
		text []byte
	}{{"description", encode(t.description)}, {"inputSchema", t.schema()}}
	var edits []edit
	var missing []byte
	for _, o := range ours {
		found := false
		for _, f := range fields {
			if f.name == o.name { // all of them, should one be repeated
				edits, found = append(edits, edit{f.value, o.text}), true
			}
		}
		if !found {
			missing = append(append(append(append(missing, ','), encode(o.name)...), ':'), o.text...)
		}
	}
	slices.SortFunc(edits, func(a, b edit) int { return a.at.start - b.at.start })
	if missing != nil { // there is a name to put them behind
		edits = append(edits, edit{span{entry.end - 1, entry.end - 1}, missing})
	}
	return edits
}

// sameTools reports whether two tools/list results list equal tools.
func sameTools(a, b []byte) bool {
	var x, y struct {
		Tools []map[string]any `json:"tools"`
	}
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
