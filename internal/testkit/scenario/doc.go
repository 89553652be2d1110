// Package scenario is what users of the Codex bridge rely on, as one table of
// scenarios. Each way to run a bridge plays all of it: in memory, on a clock of
// its own, and as the built program with the fake Codex in a sandbox of each
// runtime.
//
// A scenario speaks for the client and for Codex, lets time pass, and looks at
// what came out. Times are those of the clock in memory; where time is real they
// are stretched, so that what must come before a deadline and what after it stay
// apart on a machine that is busy. The workspace is /ws on all stages.
package scenario
