package helper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"mcpagents/internal/lease"
	"mcpagents/internal/rawjson"
)

// maxIdentity bounds what a control port may answer, in bytes.
const maxIdentity = 10 << 20

// control talks to a control port: never through a proxy, never where the
// answer sends it, and with a connection of its own for each question, so that
// no old one answers for a browser that is gone.
var control = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// readIdentity asks the control port at address which browser it belongs to.
func readIdentity(ctx context.Context, address string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, lease.IdentityTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/json/version", nil)
	if err != nil {
		return "", fmt.Errorf("read the browser's identity: %w", err)
	}
	resp, err := control.Do(req)
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
	at, _ := rawjson.Lookup(body, "webSocketDebuggerUrl")
	address, ok := rawjson.Text(at.Of(body))
	if !ok {
		return "", errIdentity
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", errIdentity
	}
	id, found := strings.CutPrefix(u.Path, "/devtools/browser/")
	if !found || id == "" || strings.Contains(id, "/") {
		return "", errIdentity
	}
	return id, nil
}
