package job

import (
	"fmt"
	"time"
)

// State is a job's state.
type State string

// The states of a job. The last three are final.
const (
	Starting  State = "starting"
	Running   State = "running"
	Canceling State = "canceling"
	Completed State = "completed"
	Failed    State = "failed"
	Canceled  State = "canceled"
)

// Over reports whether the state is final.
func (s State) Over() bool { return s == Completed || s == Failed || s == Canceled }

// maxMessage is the longest status message, in code points.
const maxMessage = 200

// Job is one piece of background work.
type Job struct {
	ID string // a random UUID
	// Thread is the agent's thread that the work belongs to, empty until it
	// is known.
	Thread string
	// OnCancel stops the work. It is called at most once, when somebody asks
	// for it, and the provider then ends the job in its own time.
	OnCancel func()

	table   *Table
	state   State
	message string
	code    string
	cursor  int

	started, active, ended time.Time
	collected              bool // its end has been read

	nextText   time.Time // when the message may change for a text again
	latestText string    // waits for that
	dropAlarm  func()

	commentary tail
	result     paged
	waiters    map[*waiter]struct{}
}

// State returns the job's state.
func (j *Job) State() State { return j.state }

// Message returns the job's status message.
func (j *Job) Message() string { return j.message }

// Active notes a sign of life of the work. The first one makes the job run.
func (j *Job) Active() {
	j.active = time.Now()
	if j.state == Starting {
		j.become(Running, j.label("running"))
	}
}

// Progress notes a sign of life with a text that says what the work does. The
// first text shows at once, the next ones once in a status interval, the latest
// of which wins.
func (j *Job) Progress(text string) {
	first := j.state == Starting
	j.active = time.Now()
	if j.state != Starting && j.state != Running {
		return
	}
	message := j.label(text)
	interval := j.table.cfg.StatusInterval
	if first || interval == 0 || !time.Now().Before(j.nextText) {
		j.nextText = time.Now().Add(interval)
		j.become(Running, message)
		return
	}
	if j.latestText == "" {
		j.dropAlarm = j.table.cfg.After(time.Until(j.nextText), j.showLatest)
	}
	j.latestText = message
}

func (j *Job) showLatest() {
	message := j.latestText
	j.latestText = ""
	if j.state == Running {
		j.nextText = time.Now().Add(j.table.cfg.StatusInterval)
		j.become(Running, message)
	}
}

// Say adds to the job's commentary.
func (j *Job) Say(text string) {
	if j.commentary.write(text) {
		j.table.log().Warn(fmt.Sprintf("%s job %s commentary exceeded %d bytes; retaining tail",
			j.table.cfg.Contract.Label, j.ID, j.commentary.limit))
	}
}

// Cancel asks for the end of the work, once. It does nothing to a job that is
// over.
func (j *Job) Cancel() {
	if j.state.Over() || j.state == Canceling {
		return
	}
	j.become(Canceling, j.label("canceling"))
	if j.OnCancel != nil {
		j.OnCancel()
	}
}

// Complete ends the job with its result.
func (j *Job) Complete(text string) {
	if !j.state.Over() {
		j.result = newPaged(text)
		j.finish(Completed, j.label("completed"))
	}
}

// Fail ends the job without one. The code may be empty.
func (j *Job) Fail(reason, code string) {
	if !j.state.Over() {
		j.code = code
		j.finish(Failed, j.label(reason))
	}
}

// Canceled ends the job because it was cancelled. How, such as "canceled", ends
// its message.
func (j *Job) Canceled(how string) {
	if !j.state.Over() {
		j.finish(Canceled, j.label(how))
	}
}

func (j *Job) finish(s State, message string) {
	j.ended = time.Now()
	j.OnCancel = nil
	j.become(s, message)
}

func (j *Job) label(text string) string {
	return Message(j.table.cfg.Contract.Label+": "+text, maxMessage)
}

// become changes state and message and tells those who wait. Nothing happens
// if neither changes.
func (j *Job) become(s State, message string) {
	if s != Running && j.dropAlarm != nil {
		j.dropAlarm()
		j.latestText = ""
	}
	if j.state == s && j.message == message {
		return
	}
	j.state, j.message = s, message
	if j.table.cfg.Contract.StatusIsActivity {
		j.active = time.Now()
	}
	j.cursor++
	for w := range j.waiters {
		w.answer()
	}
}
