package job

import (
	"fmt"
	"time"
)

// waiter is a status call that waits for a change.
type waiter struct {
	job   *Job
	reply func(Answer)
	stop  func() // of its time
}

// leave makes w forgotten.
func (w *waiter) leave() {
	w.stop()
	delete(w.job.waiters, w)
}

// answer replies with what is now.
func (w *waiter) answer() {
	w.leave()
	w.reply(w.job.table.report(w.job))
}

// Status answers a status call by reply: at once if there is something that a
// caller at cursor has not seen, the job is over or wait is 0, else when
// something changes or wait has passed. The returned function takes the call
// back, which does not touch the job.
func (t *Table) Status(id string, cursor int, wait time.Duration, reply func(Answer)) (forget func()) {
	j, missing := t.find(id)
	switch {
	case j == nil:
		reply(missing)
	case cursor > j.cursor:
		reply(t.failure(fmt.Sprintf("%s job %s has not reached that cursor; it is at %d.", t.cfg.Contract.Label, j.ID, j.cursor),
			Shape{"code", "jobId", "cursor"}, j, values{"code": "status_cursor_ahead"}))
	case j.state.Over() || cursor < j.cursor || wait <= 0:
		reply(t.report(j))
	default:
		w := &waiter{job: j, reply: reply}
		w.stop = t.cfg.After(min(wait, MaxWait), func() {
			w.leave()
			w.reply(t.heartbeat(j))
		})
		j.waiters[w] = struct{}{}
		return w.leave
	}
	return func() {}
}

// heartbeat is the report of a job of which nothing new is known.
func (t *Table) heartbeat(j *Job) Answer {
	return t.reportAs(j, j.label(fmt.Sprintf("still running; last activity %ds ago", since(j.active))))
}

// DefaultWait is how long a status call waits that names no time.
func (t *Table) DefaultWait() time.Duration { return t.cfg.DefaultWait }

// Cancel asks for the end of a job and answers with its status right after.
func (t *Table) Cancel(id string) Answer {
	j, missing := t.find(id)
	if j == nil {
		return missing
	}
	j.Cancel()
	return t.report(j)
}

// Result answers with a page of a job's result from offset, in code points.
func (t *Table) Result(id string, offset int) Answer {
	j, missing := t.find(id)
	c := &t.cfg.Contract
	switch {
	case j == nil:
		return missing
	case !j.state.Over():
		return Answer{Text: fmt.Sprintf("%s job %s is %s and has no result yet.", c.Label, j.ID, j.state), Structured: t.render(c.Pending, j, nil)}
	case j.state != Completed:
		j.collected = true
		return t.failure(fmt.Sprintf("%s job %s %s: %s", c.Label, j.ID, j.state, j.message), c.Failed, j, nil)
	case offset > j.result.end:
		return t.failure(fmt.Sprintf("The result of %s job %s ends at offset %d.", c.Label, j.ID, j.result.end), c.OutOfRange, j,
			values{"code": "result_offset_out_of_range", "offset": offset, "endOffset": j.result.end})
	}
	text, next := j.result.page(offset, PageSize)
	done := next == j.result.end
	j.collected = j.collected || done
	return Answer{Text: orPlaceholder(text, "(end of the result)"), Structured: t.render(c.Page, j, values{
		"offset": offset, "nextOffset": next, "endOffset": j.result.end, "done": done, "text": text})}
}

// Commentary answers with a page of what the agent said while it worked.
func (t *Table) Commentary(id string, offset int) Answer {
	j, missing := t.find(id)
	if j == nil {
		return missing
	}
	c := &t.cfg.Contract
	heard := &j.commentary
	if offset > heard.end {
		return t.failure(fmt.Sprintf("The commentary of %s job %s ends at offset %d.", c.Label, j.ID, heard.end), c.Behind, j,
			values{"code": "commentary_offset_out_of_range", "requestedOffset": offset, "startOffset": heard.start, "endOffset": heard.end})
	}
	start := max(offset, heard.start)
	text, next := heard.page(start, PageSize)
	return Answer{Text: orPlaceholder(text, "(no new commentary)"), Message: j.message, Structured: t.render(c.Heard, j, values{
		"requestedOffset": offset, "startOffset": start, "nextOffset": next, "endOffset": heard.end,
		"caughtUp": next == heard.end, "truncatedBefore": start > offset, "text": text})}
}

// orPlaceholder stands in for an empty text, which some clients show as a fault.
func orPlaceholder(text, placeholder string) string {
	if text == "" {
		return placeholder
	}
	return text
}
