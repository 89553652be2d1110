// Package control asks the control port of a Chromium who the browser is: its
// id is new with each start, so that it tells a browser from its successor at
// the same address.
package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"mcpagents/internal/mcp"
	"mcpagents/internal/provider/browser/lease"
)

// maxIdentity bounds what a control port may answer, in bytes.
const maxIdentity = 10 << 20

// Dial connects to a control port. The address is that of the question.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// client talks to a control port: never through a proxy, never where the answer
// sends it, and with a connection of its own for each question, so that no old
// one answers for a browser that is gone. A nil dial is the system's.
func client(dial Dial) *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DialContext: dial, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Identity asks the control port at address, an http URL without a path, which
// browser it belongs to, within lease.IdentityTimeout.
func Identity(ctx context.Context, dial Dial, address string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, lease.IdentityTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/json/version", nil)
	if err != nil {
		return "", fmt.Errorf("read the browser's identity: %w", err)
	}
	resp, err := client(dial).Do(req)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return "", fmt.Errorf("the control port did not answer within %s", lease.IdentityTimeout)
		}
		return "", fmt.Errorf("read the browser's identity: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the control port answered with HTTP status %d", resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxIdentity+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the browser's identity: %w", err)
	case len(body) > maxIdentity:
		return "", errors.New("the control port answered with more than 10 MiB")
	}
	return parseIdentity(body)
}

var errIdentity = errors.New("the control port names no webSocketDebuggerUrl with a path /devtools/browser/<id>")

// parseIdentity returns the browser's id from an answer to /json/version.
func parseIdentity(body []byte) (string, error) {
	if !json.Valid(body) {
		return "", errors.New("the control port's answer is not JSON")
	}
	at, _ := mcp.Lookup(body, "webSocketDebuggerUrl")
	address, ok := mcp.Text(at.Of(body))
	if !ok {
		return "", errIdentity
	}
	id, ok := BrowserID(address)
	if !ok {
		return "", errIdentity
	}
	return id, nil
}

// BrowserID is the id in ws://HOST:PORT/devtools/browser/ID.
func BrowserID(address string) (string, bool) {
	u, err := url.Parse(address)
	if err != nil {
		return "", false
	}
	id, found := strings.CutPrefix(u.Path, "/devtools/browser/")
	if !found || id == "" || strings.Contains(id, "/") {
		return "", false
	}
	return id, true
}
