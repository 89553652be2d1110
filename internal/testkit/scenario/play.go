package scenario

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// Play plays a scenario on a stage.
func Play(t testing.TB, stage Stage, s Scenario) { s.play(t, &Bridge{TB: t, stage: stage}) }

const (
	// Busy is how late a tick comes on a machine that has no time for a process
	// that wants to run: then what a scenario meant to do before a deadline may
	// have come behind it. On a free one a tick is some milliseconds late.
	Busy = 50 * time.Millisecond
	// tries is how often a scenario is played before its failure counts although
	// the machine was busy.
	tries = 3
	// most is how many scenarios of a suite may be played again. Where more fail,
	// the machine is no excuse: the suite shows too little.
	most = 10
)

// NotesFile is the variable that names a file to which each scenario that is
// played again is appended as one line: go test hides the log of what passes.
const NotesFile = "MCP_AGENTS_TEST_NOTES"

// Patience plays the scenarios of one suite where time is real. It may be used
// by parallel tests.
type Patience struct {
	// measure begins to measure how busy the machine is, by nothing of what is
	// tested: a slow bridge must not excuse itself. stop returns how late the
	// latest tick was.
	measure func() (stop func() time.Duration)

	mu    sync.Mutex
	again int // scenarios that were played again
}

// NewPatience returns what plays one suite.
func NewPatience() *Patience { return &Patience{measure: MeasureTicks} }

// Play plays a scenario on a stage that open makes. A scenario that fails while
// the machine was busy is played again with times that are four times as long,
// and the log of t and the NotesFile say so: t fails if the scenario fails each
// time, or once when the machine was not busy, or when too many others were
// played again before.
func (p *Patience) Play(t testing.TB, s Scenario, open func(t testing.TB, s Settings) Stage) {
	t.Helper()
	for try := 1; ; try++ {
		a := &attempt{TB: t}
		var stage Stage
		var late time.Duration
		a.run(func() {
			stage = open(a, s.Settings)
			stop := p.measure() // the start is no time of a scenario
			defer func() { late = stop() }()
			Play(a, stage, s)
		})
		if !a.Failed() {
			return
		}
		if stage == nil || late < Busy || try == tries {
			t.Error(a.words())
			return
		}
		if try == 1 && !p.excuse() {
			t.Errorf("%d scenarios have failed on a busy machine, which is no excuse for one more: %s", most, a.words())
			return
		}
		why := strings.Join(strings.Fields(a.first()), " ")
		if _, cause, ok := strings.Cut(why, " Error: "); ok { // behind testify's trace
			why = cause
		}
		note := fmt.Sprintf("played again: with longer times, since the machine was busy, a tick was %s late: %.300s", late.Round(time.Millisecond), why)
		t.Log(note)
		if err := writeNote(t.Name() + ": " + note); err != nil {
			t.Error(err)
		}
		s.Settings.Stretch = 4 * stage.Stretch()
	}
}

// excuse counts a scenario that is to be played again, and reports whether it may be.
func (p *Patience) excuse() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.again++
	return p.again <= most
}

// writeNote appends a line to the NotesFile, if there is one.
func writeNote(line string) error {
	path := os.Getenv(NotesFile)
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("note what was played again: %w (%s names the file)", err, NotesFile)
	}
	_, err = f.WriteString(line + "\n")
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("note what was played again: %w", err)
	}
	return nil
}

// tick is how long a goroutine that measures sleeps.
const tick = 5 * time.Millisecond

// MeasureTicks measures how much later than due a goroutine wakes, which tells
// how busy the machine is, until stop, which returns the worst.
func MeasureTicks() (stop func() time.Duration) { return measureBy(time.Now) }

func measureBy(now func() time.Time) (stop func() time.Duration) {
	ask, worst := make(chan struct{}), make(chan time.Duration)
	go func() {
		var late time.Duration
		due := now().Add(tick)
		timer := time.NewTimer(tick)
		defer timer.Stop()
		for {
			select {
			case <-ask:
				worst <- late
				return
			case <-timer.C:
				late = max(late, now().Sub(due))
				due = now().Add(tick)
				timer.Reset(tick)
			}
		}
	}()
	return func() time.Duration { close(ask); return <-worst }
}
