// Command fakeinit is a sandbox-init of another protocol version, for tests: FAKE_INIT
// says whether it greets as that version or refuses as one that is older or
// newer would.
package main

import (
	"os"

	"mcpagents/internal/sandbox/wire"
)

func main() {
	conn := wire.NewConn(os.Stdin, os.Stdout)
	defer conn.Close()
	if _, err := conn.Next(); err != nil {
		os.Exit(1)
	}
	var err error
	switch os.Getenv("FAKE_INIT") {
	case "greets":
		err = conn.SendJSON(wire.TypeHello, wire.Welcome{Version: wire.Version + 8, Build: "9.9.9"})
	case "refuses":
		err = conn.SendError("version", "sandbox-init 9.9.9 speaks version 9, the front end 1 to 1")
	}
	for err == nil { // until the front end leaves
		_, err = conn.Next()
	}
}
