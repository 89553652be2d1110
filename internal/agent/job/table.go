package job

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// Config is what a Table needs. Contract and After are required; a zero limit
// means the constant of this package.
type Config struct {
	Contract Contract
	// After calls a function, on the Table's own terms of concurrency, when a
	// time has passed, unless it is taken back.
	After func(time.Duration, func()) (cancel func())
	// StatusInterval is how often a text may change a job's message; 0 means
	// that every one does.
	StatusInterval time.Duration
	// DefaultWait is how long a status call waits that names no time.
	DefaultWait time.Duration

	MaxActive, MaxRetained int
	Retention              time.Duration
	MaxCommentary          int // bytes for each job
	Log                    *slog.Logger
}

// Table holds the jobs of a connection.
type Table struct {
	cfg  Config
	jobs []*Job // in the order of their start
}

// NewTable returns an empty Table.
func NewTable(cfg Config) *Table {
	cfg.MaxActive = cmp.Or(cfg.MaxActive, MaxActive)
	cfg.MaxRetained = cmp.Or(cfg.MaxRetained, MaxRetained)
	cfg.Retention = cmp.Or(cfg.Retention, Retention)
	cfg.MaxCommentary = cmp.Or(cfg.MaxCommentary, MaxCommentary)
	return &Table{cfg: cfg}
}

func (t *Table) log() *slog.Logger { return cmp.Or(t.cfg.Log, slog.Default()) }

// Active returns the jobs that are not over, in the order of their start.
func (t *Table) Active() []*Job {
	return slices.DeleteFunc(slices.Clone(t.jobs), func(j *Job) bool { return j.state.Over() })
}

// Start makes a job, or refuses when there are too many; then the job is nil.
func (t *Table) Start() (*Job, Answer) {
	t.prune()
	active := len(t.Active())
	if active >= t.cfg.MaxActive || !t.makeRoom() {
		c := &t.cfg.Contract
		return nil, t.failure(
			fmt.Sprintf("%s has no room for another job: %d of %d are active and %d of %d are kept. Read the results of jobs that are over, or cancel one.",
				c.Label, active, t.cfg.MaxActive, len(t.jobs), t.cfg.MaxRetained),
			Shape{"code", "activeJobs", "retainedJobs", "maxActiveJobs", "maxRetainedJobs"}, nil,
			values{"code": c.CapacityCode, "activeJobs": active, "retainedJobs": len(t.jobs),
				"maxActiveJobs": t.cfg.MaxActive, "maxRetainedJobs": t.cfg.MaxRetained})
	}
	now := time.Now()
	j := &Job{ID: NewID(), table: t, state: Starting, started: now, active: now, waiters: map[*waiter]struct{}{},
		commentary: tail{limit: t.cfg.MaxCommentary}}
	j.message = j.label("starting")
	t.jobs = append(t.jobs, j)
	return j, Answer{}
}

// Started is the answer to the call that started j.
func (t *Table) Started(j *Job) Answer {
	c := &t.cfg.Contract
	return Answer{Message: j.message, Structured: t.render(c.Started, j, nil),
		Text: fmt.Sprintf("%s job %s started. Call %s with its jobId and cursor %d.", c.Label, j.ID, c.Status, j.cursor)}
}

// find returns the job of an id, or the answer that there is none.
func (t *Table) find(id string) (*Job, Answer) {
	t.prune()
	if i := slices.IndexFunc(t.jobs, func(j *Job) bool { return j.ID == id }); i >= 0 {
		return t.jobs[i], Answer{}
	}
	return nil, t.failure(t.cfg.Contract.Label+" job not found. Jobs live as long as this connection, and their results "+
		"an hour after their end.", Shape{"code", "jobId"}, nil, values{"code": "job_not_found", "jobId": id})
}

// prune forgets jobs whose retention is over. It runs when jobs are asked for,
// so that no timer holds a process.
func (t *Table) prune() {
	t.jobs = slices.DeleteFunc(t.jobs, func(j *Job) bool {
		return j.state.Over() && time.Since(j.ended) >= t.cfg.Retention
	})
}

// makeRoom evicts the job that ended first of those whose end has been read,
// if room is needed, and reports whether there is room.
func (t *Table) makeRoom() bool {
	for len(t.jobs) >= t.cfg.MaxRetained {
		var oldest *Job
		for _, j := range t.jobs {
			if j.state.Over() && j.collected && (oldest == nil || j.ended.Before(oldest.ended)) {
				oldest = j
			}
		}
		if oldest == nil {
			return false
		}
		t.jobs = slices.DeleteFunc(t.jobs, func(j *Job) bool { return j == oldest })
	}
	return true
}

// since is the age of a time in whole seconds.
func since(at time.Time) int { return int(time.Since(at) / time.Second) }

// NewID returns a random UUID of version 4.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
