// Package agent is the core: what a turn of a coding agent is, whatever CLI runs
// it and whatever protocol that CLI speaks. A backend turns what its CLI writes
// into Events; a provider keeps a Record of each turn and answers its caller from
// it. The package imports nothing of the project and does no I/O.
//
// Its values belong to one goroutine, such as the event loop of a connection.
package agent

// Kind says what an Event means for its turn.
type Kind uint8

const (
	Alive          Kind = iota // a sign of life, perhaps with a text
	CommandStarted             // a command began; Event.Command is its id
	CommandEnded               // it ended
	Completed                  // the turn ended with an answer
	Aborted                    // the turn ended without one
	Unauthorized               // the vendor does not accept the login
)

// Event is one thing that an agent reports while a turn runs.
type Event struct {
	Kind Kind
	// Name is the protocol's own name of the event, for logs and messages.
	Name string
	// Status is a text for the caller's progress, empty for none. It never holds
	// a prompt, a command, its output, a query or a path.
	Status string
	// Commentary is what the agent says while it works, to be added to the record
	// of all that it said.
	Commentary string
	Command    string // of CommandStarted and CommandEnded
	Answer     string // of Completed
}

// Ends reports whether the event is the turn's last. A turn whose login is not
// accepted ends without an event of its own.
func (e Event) Ends() bool { return e.Kind == Completed || e.Kind == Aborted || e.Kind == Unauthorized }
