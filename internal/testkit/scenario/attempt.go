package scenario

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

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

// cleanUp runs the clean-ups, the last one first. One that ends with FailNow ends
// the goroutine, so that each is followed by a deferred call for the others.
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

// words are all that was logged, or that nothing was; first is the first of it.
func (a *attempt) words() string { return strings.Join(a.log(), "\n") }
func (a *attempt) first() string { return a.log()[0] }

func (a *attempt) log() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.said) == 0 {
		return []string{"it failed and did not say why"}
	}
	return slices.Clone(a.said)
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
