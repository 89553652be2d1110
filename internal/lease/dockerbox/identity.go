package dockerbox

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"mcpagents/internal/sandbox"
)

// maxVersion bounds the answer of /json/version, in bytes.
const maxVersion = 10 << 20

// idPath begins the path of a browser's own address.
const idPath = "/devtools/browser/"

// askIdentity reads /json/version of the port inside the box.
func askIdentity(ctx context.Context, home *sandbox.Sandbox, port int) (string, error) {
	client := http.Client{
		Transport: &http.Transport{DisableKeepAlives: true,
			DialContext: func(context.Context, string, string) (net.Conn, error) { return home.Dial(port) }},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort("127.0.0.1", strconv.Itoa(port))+"/json/version", nil)
	if err != nil {
		return "", fmt.Errorf("ask the browser for its id: %w", err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("ask the browser for its id: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("ask the browser for its id: status %d", answer.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxVersion+1))
	if err != nil {
		return "", fmt.Errorf("ask the browser for its id: %w", err)
	}
	if len(body) > maxVersion {
		return "", fmt.Errorf("ask the browser for its id: the answer is larger than %d bytes", maxVersion)
	}
	var version struct {
		Address string `json:"webSocketDebuggerUrl"`
	}
	if err := json.Unmarshal(body, &version); err != nil {
		return "", fmt.Errorf("ask the browser for its id: the answer of %d bytes is not JSON: %w", len(body), err)
	}
	id, ok := browserID(version.Address)
	if !ok {
		return "", fmt.Errorf("ask the browser for its id: the answer names none")
	}
	return id, nil
}

// browserID is the id in ws://HOST:PORT/devtools/browser/ID.
func browserID(address string) (string, bool) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "ws" {
		return "", false
	}
	id, ok := strings.CutPrefix(u.Path, idPath)
	if !ok || id == "" || strings.Contains(id, "/") {
		return "", false
	}
	return id, true
}
