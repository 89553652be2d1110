package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Filter selects turns. Empty members select nothing; the others must all hold.
type Filter struct{ Cwd, Thread, Request string }

func (f Filter) empty() bool { return f == Filter{} }

// Row is a turn as a caller may see it. It holds no prompt and no id of ours.
type Row struct {
	RequestID           string `json:"requestId,omitempty"`
	Tool                string `json:"tool"`
	State               string `json:"state"`
	ThreadID            string `json:"threadId,omitempty"`
	Cwd                 string `json:"cwd,omitempty"`
	CwdInferred         *bool  `json:"cwdInferred,omitempty"`
	CwdUnknown          bool   `json:"cwdUnknown,omitempty"`
	Sandbox             string `json:"sandbox,omitempty"`
	JobID               string `json:"jobId,omitempty"`
	ElapsedSeconds      int    `json:"elapsedSeconds"`
	LastActivitySeconds int    `json:"lastActivitySeconds"`
}

// Peek is what runs.
type Peek struct {
	Turns     []Row `json:"turns"`
	Count     int   `json:"count"`
	Canceling int   `json:"canceling"`
	Ambiguous bool  `json:"ambiguous"`
	Abandoned int   `json:"abandonedTurnsProcessWide"`
}

// Look returns the turns that the filter selects, the longest running first.
func Look(turns []*Record, f Filter, abandoned int) Peek {
	p := Peek{Turns: []Row{}, Abandoned: abandoned}
	turns = slices.DeleteFunc(slices.Clone(turns), func(t *Record) bool { return !f.selects(t) })
	slices.SortStableFunc(turns, func(a, b *Record) int {
		return cmp.Or(seconds(b.Started)-seconds(a.Started), strings.Compare(a.Request+a.Job, b.Request+b.Job))
	})
	for _, t := range turns {
		p.Turns = append(p.Turns, t.row())
		if t.Canceling {
			p.Canceling++
		}
	}
	p.Count = len(p.Turns)
	p.Ambiguous = !f.empty() && p.Count > 1
	return p
}

// selects does not hide a turn whose directory is not known.
func (f Filter) selects(t *Record) bool {
	return (f.Cwd == "" || t.Cwd == "" || bare(t.Cwd) == bare(f.Cwd)) &&
		(f.Thread == "" || t.Thread == f.Thread) &&
		(f.Request == "" || t.Request == f.Request)
}

// bare is a path without trailing slashes.
func bare(path string) string {
	if short := strings.TrimRight(path, "/"); short != "" {
		return short
	}
	return path
}

func (t *Record) row() Row {
	r := Row{RequestID: t.Request, Tool: t.Tool, State: "running", ThreadID: t.Thread, Cwd: t.Cwd, Sandbox: t.Sandbox, JobID: t.Job,
		ElapsedSeconds: seconds(t.Started), LastActivitySeconds: seconds(t.Active)}
	if t.Canceling {
		r.State = "canceling"
	}
	if t.Cwd == "" {
		r.CwdUnknown = true
	} else {
		r.CwdInferred = &t.Inferred
	}
	return r
}

func seconds(since time.Time) int { return int(time.Since(since) / time.Second) }

// Text describes p in words; agent names whose turns they are, such as codex.
func (p Peek) Text(agent string) string {
	var b strings.Builder
	if p.Count == 0 {
		b.WriteString("No " + agent + " turn of this connection matches. That is not evidence that the work is finished or that " +
			"nothing is being written: look at the working tree.")
	} else {
		fmt.Fprintf(&b, "%d %s turn(s) under way.", p.Count, agent)
	}
	for _, r := range p.Turns {
		fmt.Fprintf(&b, "\n- %s %s for %ds, last activity %ds ago", r.Tool, r.State, r.ElapsedSeconds, r.LastActivitySeconds)
		for _, f := range []struct{ name, value string }{{"request", r.RequestID}, {"job", r.JobID}, {"thread", r.ThreadID}, {"cwd", r.Cwd}, {"sandbox", r.Sandbox}} {
			if f.value != "" {
				fmt.Fprintf(&b, ", %s %s", f.name, f.value)
			}
		}
	}
	if p.Ambiguous {
		b.WriteString("\nSeveral turns match: do not take one of them for yours without its requestId, jobId or threadId.")
	}
	if p.Canceling > 0 {
		fmt.Fprintf(&b, "\n%d of them were told to stop and have not confirmed it.", p.Canceling)
	}
	if p.Abandoned > 0 {
		fmt.Fprintf(&b, "\n%d turn(s) of this process were given up while they or their commands possibly still run and write; "+
			"they are not in the list.", p.Abandoned)
	}
	return b.String()
}
