// Package helper lends browsers through a command of the operator, the lease
// helper.
//
// The helper is called without a shell, with its input closed and NO_COLOR=1:
//
//	acquire --session UUID --local-cdp-port PORT --viewport WxH [--app-port PORT]
//	status  --session UUID --generation TOKEN
//	release --session UUID --generation TOKEN --reason idle|shutdown
//
// acquire makes a browser's control port reachable on 127.0.0.1:PORT and writes
// a record of lines key=value: record_version=1, state=ready, generation,
// local_cdp_port and browser_url. Exit statuses: 0 done, 69 there is none
// (status: it is gone), 75 the port was taken, others failed.
//
// A helper that takes too long gets SIGTERM with its process group, and SIGKILL
// after a grace, so that it can give back what it has taken. On Linux it gets
// the same SIGTERM when this program is killed. What a helper has left running,
// such as a tunnel, is the helper's: it should end with the process that called
// it, or after a time.
package helper
