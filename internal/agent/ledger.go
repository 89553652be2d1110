package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Ledger counts the turns that were abandoned while they possibly went on. An
// entry is removed when the last event or answer of its turn arrives.
type Ledger struct {
	Agent   string // in the lines of the log, such as codex
	entries []entry
}

type entry struct {
	key   string
	turn  *Record
	since time.Time
}

// Abandon records a turn under the key of its request with Codex and returns
// the line that says so.
func (l *Ledger) Abandon(key, id, label string, t *Record) string {
	l.entries = append(l.entries, entry{key, t, time.Now()})
	return fmt.Sprintf("WARNING %s turn abandoned while possibly still running: request %s (%s); thread_id=%s job_id=%s "+
		"sandbox_mode=%s; %s was NOT confirmed stopped, so it may still write to the workspace", l.Agent, id, label,
		orNone(t.Thread), orNone(t.Job), orNone(t.Sandbox), l.Agent)
}

// Find returns the turn that is recorded under key, nil if there is none.
func (l *Ledger) Find(key string) *Record {
	for _, r := range l.entries {
		if r.key == key {
			return r.turn
		}
	}
	return nil
}

// Settle ends the record of key and returns the line that says so, empty if
// there was none.
func (l *Ledger) Settle(key string) string {
	i := slices.IndexFunc(l.entries, func(r entry) bool { return r.key == key })
	if i < 0 {
		return ""
	}
	r := l.entries[i]
	l.entries = slices.Delete(l.entries, i, i+1)
	return fmt.Sprintf("abandoned %s turn finished after %ds (thread_id=%s job_id=%s)",
		l.Agent, int(time.Since(r.since)/time.Second), orNone(r.turn.Thread), orNone(r.turn.Job))
}

// Count is the number of records.
func (l *Ledger) Count() int { return len(l.entries) }

// Rest is the line for the end of the process, empty if nothing is recorded.
func (l *Ledger) Rest() string {
	if len(l.entries) == 0 {
		return ""
	}
	var all []string
	for _, r := range l.entries {
		all = append(all, fmt.Sprintf("%s thread_id=%s job_id=%s", r.turn.Tool, orNone(r.turn.Thread), orNone(r.turn.Job)))
	}
	return fmt.Sprintf("%d abandoned %s turn(s) were still unaccounted for at teardown: %s", len(l.entries), l.Agent, strings.Join(all, "; "))
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
