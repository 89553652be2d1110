package turn

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Ledger counts the turns that were given up while they possibly went on. A
// record ends when the turn is heard of for the last time. The zero value is
// ready.
type Ledger struct {
	records []record
}

type record struct {
	key   string
	turn  *Turn
	since time.Time
}

// Abandon records a turn under the key of its request with Codex and returns
// the line that says so.
func (l *Ledger) Abandon(key, id, label string, t *Turn) string {
	l.records = append(l.records, record{key, t, time.Now()})
	return fmt.Sprintf("WARNING codex turn abandoned while possibly still running: request %s (%s); thread_id=%s job_id=%s "+
		"sandbox_mode=%s; codex was NOT confirmed stopped, so it may still write to the workspace", id, label,
		orNone(t.Thread), orNone(t.Job), orNone(t.Sandbox))
}

// Find returns the turn that is recorded under key, nil if there is none.
func (l *Ledger) Find(key string) *Turn {
	for _, r := range l.records {
		if r.key == key {
			return r.turn
		}
	}
	return nil
}

// Settle ends the record of key and returns the line that says so, empty if
// there was none.
func (l *Ledger) Settle(key string) string {
	i := slices.IndexFunc(l.records, func(r record) bool { return r.key == key })
	if i < 0 {
		return ""
	}
	r := l.records[i]
	l.records = slices.Delete(l.records, i, i+1)
	return fmt.Sprintf("abandoned codex turn finished after %ds (thread_id=%s job_id=%s)",
		int(time.Since(r.since)/time.Second), orNone(r.turn.Thread), orNone(r.turn.Job))
}

// Count is the number of records.
func (l *Ledger) Count() int { return len(l.records) }

// Rest is the line for the end of the process, empty if nothing is recorded.
func (l *Ledger) Rest() string {
	if len(l.records) == 0 {
		return ""
	}
	var all []string
	for _, r := range l.records {
		all = append(all, fmt.Sprintf("%s thread_id=%s job_id=%s", r.turn.Tool, orNone(r.turn.Thread), orNone(r.turn.Job)))
	}
	return fmt.Sprintf("%d abandoned codex turn(s) were still unaccounted for at teardown: %s", len(l.records), strings.Join(all, "; "))
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
