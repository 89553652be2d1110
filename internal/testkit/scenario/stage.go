package scenario

import (
	"testing"
	"time"
)

// Times are those of a bridge; the zero Times means its defaults.
type Times struct {
	Idle             time.Duration
	Hard             time.Duration
	CancelGrace      time.Duration
	TerminalGrace    time.Duration
	FlushStall       time.Duration
	StatusInterval   time.Duration
	ProgressInterval time.Duration
	WaitInterval     time.Duration
}

// Settings are how a scenario's bridge is set up.
type Settings struct {
	Times Times
	// Stretch is how often a time of the scenario goes into the real one; 0 means 10.
	Stretch int
	// Goal is the server's.
	Goal string
	// Version is Codex's; empty means the one that the images hold.
	Version string
	// Gone is how long Codex may take to end after the client; 0 means the default.
	Gone time.Duration
	// MaxCommentary, if not 0, bounds a job's commentary where the stage can.
	MaxCommentary int
}

// Step is what Codex does when it is told:
//
//	raw     writes Text to stdout, a part of a message too
//	say     writes Text to stderr
//	exit    ends with the status Code
//	kill    ends by the signal Code
//	deaf    reads no more
//	rotate  replaces its login, as a refresh of its token does
type Step struct {
	Do   string `json:"do"`
	Text string `json:"text,omitempty"`
	Code int    `json:"code,omitempty"`
}

// Stage is one bridge with a client and a Codex, which has answered initialize.
// Only one goroutine uses it.
type Stage interface {
	// Send writes the client's bytes, Disconnect ends them.
	Send(text string)
	Disconnect()
	// Do makes Codex do a step. With later it returns at once: the bridge may not
	// take what is written before something else happens.
	Do(s Step, later bool)
	// Settle returns when everybody has done with what was written so far.
	Settle()
	// Sleep lets the stretched time pass.
	Sleep(d time.Duration)
	// Pause makes the client stop reading until Resume.
	Pause()
	Resume()
	// Take returns what the client has read since the last call, Got what Codex
	// has read in all, and Log what the front end has said of itself.
	Take() string
	Got() string
	Log() string
	// Says waits, as long as a stage can need it, until the log holds text.
	Says(text string) bool
	// Wait waits for the bridge's end and returns the exit status of the process.
	Wait() int
	// WrittenBack reports, after the end, whether a login that Codex replaced
	// became the user's.
	WrittenBack() bool
	// Stretch is how often a time of a scenario goes into the one that passes: 1 in memory.
	Stretch() int
	// Late is the longest time that a mark of Settle took on its way through the
	// bridge: how long a scenario waits for what is due, and no excuse for it.
	Late() time.Duration
	// MaxCommentary is the bound of a job's commentary in bytes.
	MaxCommentary() int
}

// Scenario is one story. Its name begins with the numbers of the items of the
// checklist that it covers.
type Scenario struct {
	Name     string
	Settings Settings
	// InMemory, if set, is why it cannot be played in a sandbox.
	InMemory string
	play     func(t testing.TB, b *Bridge)
}

// table collects scenarios.
type table struct {
	all    []Scenario
	reason string // of those that follow
}

func (l *table) scenario(name string, s Settings, play func(t testing.TB, b *Bridge)) {
	l.all = append(l.all, Scenario{name, s, l.reason, play})
}

// inMemory adds what cannot be played in a sandbox, for a reason.
func (l *table) inMemory(reason string, add func()) {
	l.reason = reason
	add()
	l.reason = ""
}

// Scenarios returns the table.
func Scenarios() []Scenario {
	l := &table{}
	for _, add := range []func(*table){
		rewrites, faults, answersOfOurs, lists, peeks, streams, deaths, lives, hardTimeouts, pauses, halves, logins,
		progress, progressEnds, progressTexts, recoveries, cancels, limits, jobLife, jobEnds, jobCommentary, jobCapacity,
	} {
		add(l)
	}
	return l.all
}
