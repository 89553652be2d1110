// Command fakelogin plays both sides of a login with single-use refresh tokens in tests: a CLI that is
// called codex, and the vendor's token server.
package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	args := os.Args[1:]
	switch {
	case len(args) == 1 && args[0] == "mcp-server":
		os.Exit(runCLI(os.Stdin, os.Stdout))
	case len(args) == 1 && args[0] == "token-server":
		os.Exit(serve(os.Stdin, os.Stdout))
	default:
		fmt.Fprintln(os.Stderr, "usage: codex mcp-server, or fakelogin token-server")
		os.Exit(2)
	}
}

// tokens are one generation of a login, as both sides exchange them.
type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Account string `json:"account_id"`
}

// claims are what an access token says.
type claims struct {
	Exp        int64 `json:"exp"`
	Generation int   `json:"generation"`
}

// issue makes the tokens of a generation that end after a life.
func issue(generation int, life time.Duration) tokens {
	payload, _ := json.Marshal(claims{Exp: time.Now().Add(life).Unix(), Generation: generation})
	return tokens{
		Access:  "e30." + base64.RawURLEncoding.EncodeToString(payload) + ".c2lnbmF0dXJl",
		Refresh: fmt.Sprintf("refresh-%d", generation),
		Account: "account",
	}
}

func readClaims(access string) (c claims, err error) {
	parts := strings.Split(access, ".")
	if len(parts) != 3 {
		return c, fmt.Errorf("no token: %q", access)
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(payload, &c)
}
