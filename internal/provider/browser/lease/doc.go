// Package lease is what it takes to work with a borrowed browser: a Lessor,
// which lends one browser at a time and can say whether it is still the one that
// was lent, and a Downstream, which runs the tool server that drives it.
//
// There are two pairs. With package helper the operator's own command lends the
// browser, usually on another machine, and the tool server of package localtool
// is a process beside this one. In package dockerbox browser and tool server are containers that
// share a network namespace, and no port is opened on the host.
package lease
