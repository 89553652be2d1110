package codextest

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// Play plays a scenario on a stage.
func Play(t testing.TB, stage Stage, s Scenario) { s.play(t, &Bridge{TB: t, stage: stage}) }

const (
	// busy is what the way from the client to Codex or back takes when the
	// machine has no time for it: on a free one it is some milliseconds. Then what
	// a scenario meant to do before a deadline may have come behind it.
	busy = 80 * time.Millisecond
	// tries is how often a scenario is played before its failure counts although
	// the machine was busy.
	tries = 3
)

// PlayPatiently plays a scenario where time is real, on a stage that open makes.
// A scenario that fails while the machine was busy is played again with times
// that are four times as long, and the log says so: it fails if it fails each
// time, or once when the machine was not busy.
func PlayPatiently(t *testing.T, s Scenario, open func(t testing.TB, s Settings) Stage) {
	t.Helper()
	for try := 1; ; try++ {
		a := &attempt{TB: t}
		var stage Stage
		a.run(func() {
			stage = open(a, s.Settings)
			Play(a, stage, s)
		})
		if !a.Failed() {
			return
		}
		if stage == nil || stage.Late() < busy || try == tries {
			t.Error(strings.Join(a.said, "\n"))
			return
		}
		t.Logf("played again with longer times: the machine was busy, the way to Codex or back took %s: %s", stage.Late().Round(time.Millisecond), a.firstWords())
		s.Settings.Stretch = 4 * stage.Stretch()
	}
}

// attempt is a test whose failure need not be one of the test that it stands for.
type attempt struct {
	testing.TB
	mu      sync.Mutex
	said    []string
	failed  bool
	cleanup []func()
}

// run runs f, and what f wanted to be done behind it.
func (a *attempt) run(f func()) {
	done := make(chan struct{})
	go func() { // f may end it with FailNow
		defer close(done)
		defer a.cleanUp()
		f()
	}()
	<-done
}

// cleanUp runs the clean-ups backwards, also those behind one that ends with
// FailNow, and those that a clean-up asks for.
func (a *attempt) cleanUp() {
	a.mu.Lock()
	last := len(a.cleanup) - 1
	if last < 0 {
		a.mu.Unlock()
		return
	}
	f := a.cleanup[last]
	a.cleanup = a.cleanup[:last]
	a.mu.Unlock()
	defer a.cleanUp()
	f()
}

func (a *attempt) Cleanup(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cleanup = append(a.cleanup, f)
}

// firstWords are what it said first, if anything.
func (a *attempt) firstWords() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.said) == 0 {
		return "it failed without a word"
	}
	return strings.TrimSpace(a.said[0])
}

func (a *attempt) Fail() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed = true
}

func (a *attempt) Failed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failed
}

func (a *attempt) FailNow() { a.Fail(); runtime.Goexit() }

func (a *attempt) Log(args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.said = append(a.said, strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
}

func (a *attempt) Logf(format string, args ...any)   { a.Log(fmt.Sprintf(format, args...)) }
func (a *attempt) Error(args ...any)                 { a.Log(args...); a.Fail() }
func (a *attempt) Errorf(format string, args ...any) { a.Logf(format, args...); a.Fail() }
func (a *attempt) Fatal(args ...any)                 { a.Log(args...); a.FailNow() }
func (a *attempt) Fatalf(format string, args ...any) { a.Logf(format, args...); a.FailNow() }
