// Package app puts the program together: which runtime makes the sandboxes,
// which directories they see, which provider serves, and what is started and
// ended around it. It prints nothing but the log; the command line is package
// cli's.
package app
