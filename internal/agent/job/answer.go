package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Answer is the result of a tool call.
type Answer struct {
	Text    string
	IsError bool
	// Message is the job's status message, empty in an answer that shows none.
	Message string
	// Structured is the structuredContent, one JSON object.
	Structured json.RawMessage
}

// MarshalJSON writes the answer as an MCP tool result.
func (a Answer) MarshalJSON() ([]byte, error) {
	type content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	return encode(struct {
		Content    []content       `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError,omitempty"`
	}{[]content{{"text", a.Text}}, a.Structured, a.IsError})
}

// encode writes v without the escapes that only HTML needs.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// values holds members of an answer that are not the job's own.
type values map[string]any

// step is a call that an answer suggests.
type step struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
}

// render writes the members of shape in order: from extra, else from the job,
// which may be nil.
func (t *Table) render(shape Shape, j *Job, extra values) json.RawMessage {
	out := []byte{'{'}
	for _, name := range shape {
		v, ok := extra[name]
		if !ok && j != nil {
			v, ok = j.member(name)
		}
		if !ok {
			continue
		}
		raw, err := encode(v)
		if err != nil {
			panic("job: " + err.Error()) // only our own types come here
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		if name == "nextStep" {
			name = "next"
		}
		out = append(append(fmt.Appendf(out, "%q", name), ':'), raw...)
	}
	return append(out, '}')
}

// member returns a member that every answer about j words the same.
func (j *Job) member(name string) (any, bool) {
	c := &j.table.cfg.Contract
	switch name {
	case "jobId":
		return j.ID, true
	case "state":
		return j.state, true
	case "cursor":
		return j.cursor, true
	case "message", "latestStatus":
		return j.message, true
	case "threadId":
		return j.Thread, j.Thread != ""
	case "code":
		return j.code, j.code != ""
	case "elapsedSeconds":
		return since(j.started), true
	case "lastActivitySeconds":
		return since(j.active), true
	case "resultAvailable":
		return j.state == Completed, true
	case "resultTruncated":
		return false, true
	case "commentaryStartOffset":
		return j.commentary.start, true
	case "commentaryEndOffset":
		return j.commentary.end, true
	case "commentaryTruncated":
		return j.commentary.start > 0, true
	case "commentaryComplete":
		return j.state.Over(), true
	case "next":
		return step{c.Status, map[string]any{"jobId": j.ID, "cursor": j.cursor}}, true
	case "nextStep": // the same, or what follows the end
		switch {
		case j.state == Completed:
			return step{c.Result, map[string]any{"jobId": j.ID, "offset": 0}}, true
		case j.state.Over():
			return nil, false
		}
		return j.member("next")
	}
	return nil, false
}

// failure is an error answer with a code.
func (t *Table) failure(text string, shape Shape, j *Job, extra values) Answer {
	return Answer{Text: text, IsError: true, Structured: t.render(shape, j, extra)}
}

// report is the status of a job as an answer.
func (t *Table) report(j *Job) Answer { return t.reportAs(j, j.message) }

func (t *Table) reportAs(j *Job, message string) Answer {
	c := &t.cfg.Contract
	hint := c.HintWait
	switch {
	case j.state == Completed:
		hint = c.HintResult
	case j.state.Over():
		hint = c.HintFailed
		j.collected = true // it has nothing but its status
	}
	hint = strings.NewReplacer("{job}", j.ID, "{cursor}", strconv.Itoa(j.cursor)).Replace(hint)
	text := fmt.Sprintf("%s job %s is %s: %s", c.Label, j.ID, j.state, message) + hint
	return Answer{Text: text, Message: message, Structured: t.render(c.Report, j, values{"message": message})}
}
