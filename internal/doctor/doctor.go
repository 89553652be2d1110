// Package doctor looks at what a server will need and says what to do about
// what is missing. It only looks: it starts no container, writes no file and
// pulls no image.
package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// State is what a check found.
type State string

// The states. Only Failed and Missing keep a call from working.
const (
	OK      State = "ok"
	Warning State = "warning"
	Missing State = "missing"
	Failed  State = "failed"
	Skipped State = "skip" // it depends on one that failed
)

// Result is one line of the report.
type Result struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	Text  string `json:"text"` // and what to do
}

// Check is one thing to look at.
type Check struct {
	Name string
	// Needs is an earlier check without which this one says nothing.
	Needs string
	Look  func(ctx context.Context) (State, string)
}

// lookTime bounds one check: a machine that hangs is a finding too.
const lookTime = 20 * time.Second

// Run looks at everything, in the order given.
func Run(ctx context.Context, checks []Check) []Result {
	var results []Result
	bad := map[string]bool{}
	for _, c := range checks {
		if bad[c.Needs] {
			bad[c.Name] = true
			results = append(results, Result{c.Name, Skipped, "look again when this is right: " + c.Needs})
			continue
		}
		one, cancel := context.WithTimeout(ctx, lookTime)
		state, text := c.Look(one)
		cancel()
		bad[c.Name] = state == Missing || state == Failed
		results = append(results, Result{c.Name, state, text})
	}
	return results
}

// Healthy reports whether a call can work.
func Healthy(results []Result) bool {
	for _, r := range results {
		if r.State == Missing || r.State == Failed || r.State == Skipped {
			return false
		}
	}
	return true
}

// Write writes the report: a line for each check, or JSON.
func Write(w io.Writer, results []Result, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(results)
	}
	for _, r := range results {
		if _, err := fmt.Fprintf(w, "%-8s %-10s %s\n", r.State, r.Name, strings.ReplaceAll(r.Text, "\n", "; ")); err != nil {
			return err
		}
	}
	return nil
}
