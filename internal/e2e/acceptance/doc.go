// Package acceptance drives the built program from outside, as an MCP client
// does, against real sandboxes of both runtimes, and looks at the machine for
// what is left: containers, processes, copies of logins. It holds tests only.
package acceptance
