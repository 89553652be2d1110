package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mcpagents/internal/agent/job"
	"mcpagents/internal/mcp/toolserver"
	"mcpagents/internal/provider/oneshot"
	"mcpagents/internal/workspace"
)

// Schemas of the arguments of the job tools.
var jobProperties = map[string]string{
	"prompt":  `{"type":"string","minLength":1,"description":"What to review and what to look for; the reviewer sees nothing else of your conversation."}`,
	"cwd":     `{"type":"string","minLength":1,"description":"Absolute path of the directory to review, inside a workspace root."}`,
	"jobId":   `{"type":"string","minLength":1}`,
	"cursor":  `{"type":"integer","minimum":0,"description":"The cursor of the last answer about this job."}`,
	"wait_ms": `{"type":"integer","minimum":0,"maximum":60000,"description":"How long to wait for a change, 10000 by default."}`,
	"offset":  `{"type":"integer","minimum":0,"description":"Where to read on, in characters; 0 by default."}`,
}

// jobTool is a job tool without its function.
type jobTool struct {
	name        string
	properties  []string // in the order of the schema
	required    []string
	description string
}

func (t jobTool) schema() json.RawMessage {
	properties := make([]string, len(t.properties))
	for i, name := range t.properties {
		properties[i] = fmt.Sprintf("%q:%s", name, jobProperties[name])
	}
	required, _ := json.Marshal(t.required) // strings
	return json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{%s},"required":%s,"additionalProperties":false}`,
		strings.Join(properties, ","), required))
}

// jobTools are in the order in which they are listed.
func jobTools(deadline time.Duration) []jobTool {
	return []jobTool{
		{"claude-start", []string{"prompt", "cwd"}, []string{"prompt", "cwd"}, fmt.Sprintf("Starts a one-shot code review by Claude Code in "+
			"the background and returns its job at once. The reviewer works read-only. Its deadline is %d ms. Poll claude-status until the job "+
			"is completed, failed or canceled, then read claude-result.", deadline.Milliseconds())},
		{"claude-status", []string{"jobId", "cursor", "wait_ms"}, []string{"jobId", "cursor"}, "Waits until a review has something new since " +
			"cursor, at most wait_ms, and returns its status. Cancelling this call does not cancel the review."},
		{"claude-result", []string{"jobId", "offset"}, []string{"jobId"}, "Reads the result of a completed review in pages of at most 32768 " +
			"characters: repeat it with nextOffset until done."},
		{"claude-cancel", []string{"jobId"}, []string{"jobId"}, "Stops a review and returns its status. It may be called more than once."},
	}
}

// tools are the job tools.
func (s *jobs) tools() []toolserver.Tool {
	calls := map[string]func(context.Context, toolserver.Call, jobArguments) toolserver.Result{
		"claude-start": s.callStart,
		"claude-status": func(ctx context.Context, call toolserver.Call, a jobArguments) toolserver.Result {
			return s.status(ctx, call, a.jobID, a.cursor, a.wait)
		},
		"claude-result": func(_ context.Context, _ toolserver.Call, a jobArguments) (r toolserver.Result) {
			s.locked(func() { r = resultFrom(s.table.Result(a.jobID, a.offset)) })
			return r
		},
		"claude-cancel": func(_ context.Context, _ toolserver.Call, a jobArguments) (r toolserver.Result) {
			s.locked(func() { r = resultFrom(s.table.Cancel(a.jobID)) })
			return r
		},
	}
	var list []toolserver.Tool
	for _, t := range jobTools(s.p.cfg.JobTimeout) {
		list = append(list, toolserver.Tool{Name: t.name, Description: t.description, InputSchema: t.schema(),
			Call: func(ctx context.Context, call toolserver.Call) (toolserver.Result, error) {
				a, issues := parseJobArguments(call.Arguments, t)
				if len(issues) > 0 {
					return invalid(issues), nil
				}
				return calls[t.name](ctx, call, a), nil
			}})
	}
	return list
}

// callStart is claude-start. What would make the job fail at once is said here.
func (s *jobs) callStart(ctx context.Context, _ toolserver.Call, a jobArguments) toolserver.Result {
	if err := s.p.cfg.RootsErr; err != nil {
		return refused("workspace_unusable", err)
	}
	dir, err := s.p.cfg.Roots.Cwd(a.cwd)
	if err != nil {
		problem := err.Error()
		if fault, ok := errors.AsType[*workspace.CwdError](err); ok {
			problem = fault.Problem
		}
		return invalid([]issue{{"cwd", problem}})
	}
	root, _ := s.p.cfg.Roots.Holding(dir)
	if err := s.p.loginIsThere(ctx); err != nil {
		return refused("login_missing", err)
	}
	return s.start(a.prompt, dir, root)
}

func refused(code string, err error) toolserver.Result {
	return toolserver.Result{Text: err.Error(), IsError: true, Structured: map[string]string{"code": code}}
}

// issue is a fault of an argument.
type issue struct {
	Argument string `json:"argument"`
	Problem  string `json:"problem"`
}

func invalid(issues []issue) toolserver.Result {
	return toolserver.Result{Text: "Invalid Claude job arguments", IsError: true, Structured: struct {
		Code   string  `json:"code"`
		Issues []issue `json:"issues"`
	}{"invalid_arguments", issues}}
}

// jobArguments are those of any job tool.
type jobArguments struct {
	prompt, cwd, jobID string
	cursor, offset     int
	wait               time.Duration
}

// parseJobArguments reads the arguments of a job tool. Faults come in a fixed
// order: what is not supported, what is missing, then what is of a wrong kind.
func parseJobArguments(raw json.RawMessage, t jobTool) (jobArguments, []issue) {
	a := jobArguments{wait: DefaultStatusWait}
	var issues []issue
	given := map[string]json.RawMessage{}
	for _, m := range oneshot.Members(raw) {
		if !slices.Contains(t.properties, m.Name) {
			issues = append(issues, issue{m.Name, "is not supported"})
			continue
		}
		given[m.Name] = m.Value
	}
	for _, name := range t.required {
		if _, ok := given[name]; !ok {
			issues = append(issues, issue{name, "is required"})
		}
	}
	wording := job.Claude.Wording
	checks := []struct {
		name  string
		check func(json.RawMessage) string
	}{
		{"prompt", nonblank(&a.prompt)}, {"cwd", absolute(&a.cwd)}, {"jobId", nonblank(&a.jobID)},
		{"cursor", number(&a.cursor)}, {"offset", number(&a.offset)},
		{"wait_ms", func(raw json.RawMessage) (problem string) { a.wait, problem = wording.WaitTime(raw); return problem }},
	}
	for _, c := range checks {
		if value, ok := given[c.name]; ok {
			if problem := c.check(value); problem != "" {
				issues = append(issues, issue{c.name, problem})
			}
		}
	}
	return a, issues
}

func nonblank(to *string) func(json.RawMessage) string {
	return func(raw json.RawMessage) string {
		s, ok := text(raw)
		if !ok || strings.TrimSpace(s) == "" {
			return "must be a nonblank string"
		}
		*to = s
		return ""
	}
}

func absolute(to *string) func(json.RawMessage) string {
	return func(raw json.RawMessage) string {
		if problem := nonblank(to)(raw); problem != "" {
			return problem
		}
		if !filepath.IsAbs(*to) {
			return "must be an absolute path"
		}
		return ""
	}
}

func number(to *int) func(json.RawMessage) string {
	return func(raw json.RawMessage) (problem string) {
		*to, problem = job.Claude.Wording.Number(raw)
		return problem
	}
}
