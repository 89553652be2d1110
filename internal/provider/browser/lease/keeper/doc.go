// Package keeper offers the browser of our own containers through the helper
// protocol, for front ends that borrow by a command: acquire, status and release
// are short, so a keeper holds the lease between them. It is this program again,
// in a session of its own. It holds the box, serves the browser's control port on
// the port that was asked for, and answers status and release on a socket that
// only this user can reach.
//
// Nothing outlives its user: the keeper ends with the release, with the process
// it was started for, with the browser, and with an acquire that did not live to
// hand the lease over; and the box ends with the keeper.
package keeper
