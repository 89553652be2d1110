package credentials

import "fmt"

// Status is what a write-back came to.
type Status int

const (
	// Unchanged: there was nothing to write. The copy is what the user's file is, or the
	// login never came from a file.
	Unchanged Status = iota
	// Written: the user's file is now the copy.
	Written
	// CanonicalChanged: the user's file is no longer what the copy descends from (a newer
	// login, a logout, another sandbox that was first), so it was left alone.
	CanonicalChanged
	// Invalidated: the login was reported invalid, so nothing is written any more.
	Invalidated
	// Refused: the copy, or the kind of the user's file, was not acceptable.
	Refused
	// Failed: the operating system would not let us; the error has the cause.
	Failed
)

func (s Status) String() string {
	names := [...]string{"unchanged", "written", "canonical changed", "invalidated", "refused", "failed"}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("status(%d)", int(s))
	}
	return names[s]
}

// Outcome is the result of one write-back.
type Outcome struct {
	Status Status
	Reason string // why it was refused or failed; never file content

	source Source
}

func refused(reason string) Outcome { return Outcome{Status: Refused, Reason: reason} }

// Message is the log line of an outcome, the same for all callers; "" for one that is not
// worth a line. It holds no secret.
func (o Outcome) Message() string {
	name, file := o.source.Name, o.source.Credential
	switch o.Status {
	case Written:
		return fmt.Sprintf("persisted refreshed %s %s back to %s", name, file, o.source.place())
	case CanonicalChanged:
		return fmt.Sprintf("skipped refreshed %s %s write-back because the canonical auth changed since it was copied", name, file)
	case Invalidated:
		return fmt.Sprintf("skipped %s %s write-back after authentication invalidation", name, file)
	case Refused:
		return fmt.Sprintf("failed to persist %s %s: refused the sandbox's copy: %s", name, file, o.Reason)
	case Failed:
		return fmt.Sprintf("failed to persist %s %s: %s", name, file, o.Reason)
	}
	return ""
}
