// Package dockerbox is the lease that needs no operator: a Chromium of our own
// and the tool server that drives it, each in a container, with no port opened
// on the host.
//
// Three things share one network namespace. The box, a container in which
// nothing runs but sandbox-init, holds it. Chromium is a command in the box: its
// death does not move the namespace, and its successor is found at the same
// address. The tool server's container joins the namespace and attaches to
// 127.0.0.1. The box is opened for the tool server, before there is a browser, so
// that a lease costs only Chromium's start.
//
// The tool server is told an address and not the browser's id, because it is
// started before the browser exists; it would silently attach to whatever
// answers there. So the id is checked here: Chromium says it on its stderr, and
// Identity asks for it again through the box's stream and compares.
//
// Everything hangs on the stream to the box's init: when the front end ends,
// however it ends, the box, Chromium and the tool server end too.
package dockerbox
