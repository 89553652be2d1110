package codex

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"mcpagents/internal/agent/job"
	"mcpagents/internal/mcp"
)

// issue is one reason to refuse a call. It never holds a value that the caller
// gave: prompts and keys must not come back in errors and logs.
type issue struct {
	Argument string `json:"argument"`
	Problem  string `json:"problem"`
}

// invalid is the data of an invalid-params error.
type invalid struct {
	ToolName          string   `json:"toolName"`
	AllowedArguments  []string `json:"allowedArguments"`
	RequiredArguments []string `json:"requiredArguments"`
	Issues            []issue  `json:"issues"`
}

// fields lists the arguments at fault for a log line. Their names are the
// caller's text, so control characters and long lists do not get through.
func (v *invalid) fields() string {
	const most = 16
	names := make([]string, 0, most)
	for _, i := range v.Issues {
		if len(names) == most {
			names = append(names, "…")
			break
		}
		names = append(names, strings.Trim(string(mcp.Encode(strings.ToValidUTF8(cut(i.Argument, 64), "?"))), `"`))
	}
	return strings.Join(names, ", ")
}

func cut(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

// checkOrder is the order in which values are checked, whatever the tool.
var checkOrder = []string{"prompt", "cwd", "sandbox", "model", "model_reasoning_effort", "allow_subagents", "goal",
	"threadId", "jobId", "cursor", "wait_ms", "offset", "requestId"}

// validate returns the faults of a call, nil if it has none. checkCwd returns
// the problem of a working directory, empty if it has none.
func (c *call) validate(checkCwd func(string) string) *invalid {
	t := c.tool
	v := &invalid{t.name, t.names(false), t.names(true), nil}
	if raw := bytes.TrimLeft(c.at.Of(c.message), " \t\r\n"); len(raw) == 0 || raw[0] != '{' {
		v.Issues = []issue{{"arguments", "must be an object"}}
		return v
	}
	for _, name := range v.RequiredArguments {
		if _, ok := c.raw(name); !ok {
			v.Issues = append(v.Issues, issue{name, "is required"})
		}
	}
	for _, name := range t.unsupported(c.members) {
		v.Issues = append(v.Issues, issue{name, "is not supported"})
	}
	for _, name := range checkOrder {
		a := t.argument(name)
		raw, ok := c.raw(name)
		if a == nil || !ok {
			continue
		}
		if problem := a.check(raw, checkCwd); problem != "" {
			v.Issues = append(v.Issues, issue{name, problem})
		}
	}
	if v.Issues == nil {
		return nil
	}
	return v
}

// unsupported returns the sorted names that t does not take, each once.
func (t *tool) unsupported(given []mcp.Member) []string {
	var names []string
	for _, m := range given {
		if t.argument(m.Name) == nil {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// check returns the problem of a value, empty if it has none.
func (a *argument) check(raw []byte, checkCwd func(string) string) string {
	switch a.kind {
	case kindBoolean:
		var b *bool
		if json.Unmarshal(raw, &b) != nil || b == nil {
			return "must be a boolean"
		}
		return ""
	case kindCount:
		_, problem := job.Codex.Wording.Number(raw)
		return problem
	case kindWait:
		_, problem := job.Codex.Wording.WaitTime(raw)
		return problem
	}
	s, ok := mcp.Text(raw)
	switch {
	case a.kind == kindEnum && (!ok || !slices.Contains(a.enum, s)):
		return "must be one of: " + strings.Join(a.enum, ", ")
	case !ok:
		return "must be a string"
	case a.kind == kindID && trim(s) == "":
		return "must not be blank"
	case a.kind == kindPath && !filepath.IsAbs(s):
		return "must be an absolute path"
	case a.kind == kindPath && a.required: // elsewhere it only selects
		return checkCwd(s)
	}
	return ""
}
