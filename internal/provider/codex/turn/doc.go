// Package turn holds what is known of Codex's turns, whatever protocol they are
// run by: how their events read, what may be said of them while they run, which
// are running, which were abandoned, and where their threads work.
//
// Nothing here is a frame or a timer of a connection. Everything belongs to the
// goroutine of the bridge that runs the turns.
package turn

import "time"

// Turn is one piece of agent work: a blocking call or a background job.
type Turn struct {
	Tool    string // codex or codex-reply
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

	Speech Speech
	// Commands are the calls of commands that began and have not ended. An
	// aborted turn does not end its commands.
	Commands map[string]struct{}
}

// Note takes an event of the turn: a sign of life, and perhaps a command that
// begins or ends.
func (t *Turn) Note(e *Event) {
	t.Active = time.Now()
	switch e.Type {
	case "exec_command_begin":
		if t.Commands == nil {
			t.Commands = map[string]struct{}{}
		}
		t.Commands[e.CallID] = struct{}{}
	case "exec_command_end":
		delete(t.Commands, e.CallID)
	}
}
