// Package config is the server's command line as data: one table of flags,
// from which the parser, the help text and the list of documented names are
// derived, so that the three cannot disagree.
//
// [Parse] is pure: it reads an argument list and an environment given as a
// function, touches no file and prints nothing. Paths are kept as they were
// given; whoever uses one resolves it.
package config
