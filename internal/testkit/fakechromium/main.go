// Command fakechromium is a headless Chromium for tests of its box: it says its
// id on stderr, answers /json/version on its control port, and ends at SIGTERM.
// With a window of 1x1 it never comes up.
package main

import (
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

func main() {
	port := ""
	for _, arg := range os.Args[1:] {
		if arg == "--window-size=1,1" {
			time.Sleep(time.Hour)
		}
		if value, ok := strings.CutPrefix(arg, "--remote-debugging-port="); ok {
			port = value
		}
	}
	address := net.JoinHostPort("127.0.0.1", port)
	l, err := net.Listen("tcp4", address)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bind() failed: Address already in use (98)")
		os.Exit(1)
	}
	self := "ws://" + address + "/devtools/browser/" + rand.Text()
	fmt.Fprintln(os.Stderr, "DevTools listening on "+self)
	fmt.Fprintln(os.Stderr, http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"webSocketDebuggerUrl":%q}`, self)
	})))
	os.Exit(1)
}
