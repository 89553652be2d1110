package codex

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"mcpagents/internal/agent"
	"mcpagents/internal/agent/job"
	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
)

// newJobs returns the table of the bridge's jobs.
func (b *bridge) newJobs() *job.Table {
	t := b.cfg.Times
	wait := t.WaitInterval // without a status interval
	if t.StatusInterval > 0 {
		wait = min(t.StatusInterval, job.MaxWait)
	}
	return job.NewTable(job.Config{Contract: job.Codex, After: b.after, StatusInterval: t.StatusInterval, DefaultWait: wait,
		MaxCommentary: b.cfg.MaxCommentary, Log: b.Log})
}

// startJob runs a call as a job. Codex gets it as a call of ours, without a
// progress token.
func (b *bridge) startJob(c *call, mode mcp.Mode) (*job.Job, job.Answer) {
	j, refused := b.jobs.Start()
	if j == nil {
		return nil, refused
	}
	b.jobCalls++
	id := fmt.Sprintf("%sjob/%s/%d", privateIDs, b.instance, b.jobCalls)
	c = c.under(id, b.tools.tool(c.tool.native))
	r := &request{job: j, Request: proxy.Request{ID: mcp.ParseID(mcp.Encode(id)), Method: "tools/call", Callback: func(answer *mcp.Response) {
		if answer.Error != nil {
			j.Fail(strings.TrimPrefix(answer.Error.Message, "mcp-agents: "), "")
		}
	}}}
	r.Key = r.ID.Key()
	b.Accept(r)
	r.turn = b.newTurn(r, c)
	j.OnCancel = func() { b.cancelJob(r) }
	b.Forward(proxy.Pending[*request]{Message: mcp.Message{Raw: c.message, Mode: mode, Terminated: true}, Request: r, Translate: b.translate(c)})
	return j, b.jobs.Started(j)
}

// newTurn describes the turn of a native call.
func (b *bridge) newTurn(r *request, c *call) *agent.Record {
	now := time.Now()
	t := &agent.Record{Tool: c.tool.name, Started: now, Active: now}
	if r.job != nil {
		t.Job = r.job.ID
	} else {
		t.Request = r.Key
	}
	if c.tool.name == toolCodex {
		t.Cwd, t.Sandbox = c.text("cwd"), c.text("sandbox")
		return t
	}
	t.Thread = c.text("threadId")
	if r.job != nil {
		r.job.Thread = t.Thread
	}
	t.Cwd, t.Sandbox, t.Inferred = b.threads.Find(t.Thread)
	return t
}

// cancelJob stops a job's turn, which may not have reached Codex.
func (b *bridge) cancelJob(r *request) {
	if b.Withdraw(r) {
		b.Settle(r)
		r.job.Canceled("canceled")
		return
	}
	b.step(r, canceled)
}

// finishJob ends a job by Codex's answer. A turn that was aborted has failed,
// whatever the answer says.
func (b *bridge) finishJob(r *request, env mcp.Envelope) {
	var result struct {
		IsError bool `json:"isError"`
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		Structured struct {
			Content  *string `json:"content"`
			ThreadID string  `json:"threadId"`
		} `json:"structuredContent"`
	}
	if r.end == agent.Aborted {
		r.job.Fail(abortText, "")
		return
	}
	if env.Error != nil {
		var e struct {
			Message string `json:"message"`
		}
		_ = json.Unmarshal(env.Error, &e)
		r.job.Fail(e.Message, "")
		return
	}
	_ = json.Unmarshal(env.Result, &result) // a member of another type stays empty
	if r.job.Thread == "" {
		r.job.Thread = result.Structured.ThreadID
	}
	var texts []string
	for _, c := range result.Content {
		if c.Type == "text" {
			texts = append(texts, c.Text)
		}
	}
	text := strings.Join(texts, "\n")
	if result.Structured.Content != nil {
		text = *result.Structured.Content
	}
	if result.IsError {
		r.job.Fail(text, "")
		return
	}
	r.job.Complete(text)
}

// oversizeAnswer fails a job whose answer is too long to be held.
func (b *bridge) oversizeAnswer(r *request) {
	b.Settle(r)
	r.job.Fail(fmt.Sprintf("the answer of codex is longer than %d MiB", proxy.MaxLine>>20), "")
}
