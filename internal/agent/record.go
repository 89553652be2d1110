package agent

import "time"

// Record is what is known of one turn: a blocking call or a background job.
type Record struct {
	Tool    string // the tool that started it
	Request string // the caller's id with its type, such as number:3; empty for a job
	Job     string // the job's id, empty for a blocking call
	Thread  string // empty until it is known

	// Cwd is the working directory, empty if it is not known. Inferred says
	// that it is that of the thread's first call.
	Cwd      string
	Inferred bool
	Sandbox  string

	Started time.Time
	Active  time.Time // of the last event
	// Canceling says that the turn was told to stop.
	Canceling bool
	// Over says that the turn is known to have ended.
	Over bool

	// Commands are the calls of commands that began and have not ended. An
	// aborted turn does not end its commands.
	Commands map[string]struct{}
}

// Note takes an event of the turn: a sign of life, and perhaps a command that
// begins or ends.
func (t *Record) Note(e Event) {
	t.Active = time.Now()
	switch e.Kind {
	case CommandStarted:
		if t.Commands == nil {
			t.Commands = map[string]struct{}{}
		}
		t.Commands[e.Command] = struct{}{}
	case CommandEnded:
		delete(t.Commands, e.Command)
	}
}
