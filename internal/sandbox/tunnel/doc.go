// Package tunnel carries TCP connections over the frames between a front end
// and its sandbox-init, in both directions and with the same code at both ends:
// a page's connection to a port inside goes out to the front end's machine, and
// the front end reaches a port of the sandbox that nobody else can.
//
// Each connection is a stream of its own with its own credit, so that one whose
// reader has stopped holds nothing else. An end of input passes as one, and the
// other direction goes on. What cannot be delivered, or not be connected, is cut
// off at both ends.
package tunnel
