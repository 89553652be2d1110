// Package guest is the first process of every sandbox and the only one
// that starts commands in it. In a container it is PID 1; for the local runtime
// it is a child subreaper at the root of a supervised process tree.
//
// What it guarantees:
//
//   - The stream to the front end is its lifeline. When the stream ends, when
//     nothing arrives for the lifeline's length, or on bye, every process gets
//     TERM, after the grace KILL, and init exits.
//   - When a command ends, everything else in the sandbox is killed, the
//     command's pipes are read to their end, and only then its exit is sent.
//   - No process of the same user can read its memory, environment or
//     descriptors, so none can forge a frame.
//   - Its reader never waits for a consumer: a cancel passes a flood.
//
// A hostile command that still breaks init (it may lower its limits) breaks
// only its own sandbox.
package guest

import "time"

const (
	// helloWithin is how long init waits for the front end's first frame.
	helloWithin = 30 * time.Second
	// tick is the beat by which the lifeline is counted. Ticks are counted and
	// not the wall clock, so that a machine that slept does not end sandboxes
	// whose front end slept as long.
	tick = time.Second
	// Marker is the environment variable that every command carries, by which
	// the local runtime finds what survived a killed init. Its value is
	// <sandbox id>:<init's pid>:<init's start time>.
	Marker = "MCP_AGENTS_SANDBOX"
	// UnownedPrefix begins the name that a local private home has before its
	// lock is held and while it is removed. One that is found is nobody's.
	UnownedPrefix = ".mcp-agents-unowned-"
	// LockName is the file in a local private home that init keeps locked.
	LockName = ".mcp-agents.lock"
)
