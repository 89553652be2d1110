package browser

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mcpagents/internal/provider/browser/lease"
)

// browserURL is the address of a control port where the downstream runs.
func browserURL(port int) string { return "http://127.0.0.1:" + strconv.Itoa(port) }

// start starts a downstream for a control port; 0 means that the downstream
// picks one.
func (c *Config) start(ctx context.Context, port int) (*lease.Child, int, error) {
	for picked := 0; port == 0 || c.allows(port); picked++ {
		if picked == maxAttempts {
			return nil, 0, errors.New("every free port is one that an allowed URL pattern names")
		}
		var err error
		if port, err = c.Downstream.Port(ctx); err != nil {
			return nil, 0, err
		}
	}
	child, err := c.Downstream.Start(ctx, c.arguments(port))
	return child, port, err
}

// arguments are those of chrome-devtools-mcp. A page that reached the control
// port could drive the browser past every rule, so the port is blocked under all
// names of the machine, and files of the browser's machine are no pages. Allowed
// patterns exclude the blocked ones in the downstream; they name no such port.
func (c *Config) arguments(port int) []string {
	args := []string{"--browserUrl", browserURL(port), "--no-usage-statistics"}
	if c.LogFile != "" {
		args = append(args, "--logFile", c.LogFile)
	}
	for _, p := range c.AllowedURLPatterns {
		args = append(args, "--allowedUrlPattern", p)
	}
	if len(c.AllowedURLPatterns) == 0 {
		args = append(args, "--blockedUrlPattern", fmt.Sprintf("*://*:%d/*", port))
	}
	return append(args, "--fileNavigations=false")
}

// allows reports whether an allowed pattern names the port.
func (c *Config) allows(port int) bool {
	for _, p := range c.AllowedURLPatterns {
		if portOf(p) == strconv.Itoa(port) {
			return true
		}
	}
	return false
}

// CheckPatterns refuses allowed URL patterns that could match the control port,
// which is not known yet: those whose port is no plain number. A pattern without
// a port matches the scheme's own port only.
func CheckPatterns(patterns []string) error {
	for _, p := range patterns {
		if port := portOf(p); strings.Trim(port, "0123456789") != "" {
			return fmt.Errorf("the allowed URL pattern %q could match the browser's control port, from which a page can drive the browser: "+
				"give the port as a number, or leave it out", p)
		}
	}
	return nil
}

// networkless are schemes whose addresses have no port.
var networkless = []string{"about", "blob", "data"}

// portOf is the port component of a URL pattern, empty if it has none. A pattern
// that cannot be told apart comes back whole, which is no number.
func portOf(pattern string) string {
	_, rest, found := strings.Cut(pattern, "://")
	if !found {
		scheme, _, _ := strings.Cut(pattern, ":")
		if slices.Contains(networkless, scheme) {
			return ""
		}
		return pattern // such as "*", which matches every port
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}
	if strings.ContainsAny(authority, `{(\@`) {
		return pattern // groups may span the colon
	}
	if strings.HasPrefix(authority, "[") {
		_, authority, _ = strings.Cut(authority, "]")
	}
	_, port, _ := strings.Cut(authority, ":")
	return port
}
