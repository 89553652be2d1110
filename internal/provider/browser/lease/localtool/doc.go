// Package localtool runs chrome-devtools-mcp as a process beside this one, for
// a browser whose control port is a port of this machine.
//
// The program is the operator's command, else one that is installed beside this
// one, else the latest that npx brings. Nothing is looked for in the startup
// directory: what lies in a workspace is not trusted to be run.
package localtool
