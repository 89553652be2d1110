package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
)

// Every reader of a value returns an error that is the rest of a sentence
// whose subject is the flag or the variable: "must be a positive number".

// MaxTimer is the longest delay of the status interval and of the tunables in
// milliseconds: 2,147,483,647 ms, the limit that users of the Node program know.
const MaxTimer = math.MaxInt32 * time.Millisecond

// maxSeconds is where longer times are cut: 100 years, far from the overflow
// of a time.Duration even when it is doubled or added to a clock.
const maxSeconds = 100 * 365 * 24 * 3600

const (
	minMemory, maxMemory   = 6 << 20, 1 << 50 // the engine's own lower limit
	minMessage, maxMessage = 1 << 10, 1 << 30
	minPids, maxPids       = 32, 4194304 // the kernel's upper limit
	maxWarm                = 64

	minResultChars, maxResultChars = 1000, 10_000_000
	maxCPUs                        = 1 << 20
	minNanoCPUs                    = 10_000_000
	noID                           = math.MaxUint32 // -1 to the kernel: "no change"
)

var (
	errNonNegative = errors.New("must be a non-negative number")
	errPositive    = errors.New("must be a positive number")
	errBlank       = errors.New("must not be blank")
	errBool        = errors.New("must be true or false")
	errViewport    = errors.New("must use positive WxH dimensions")
	errAppPort     = errors.New("must be an integer from 1 to 65535")
	errURLPatterns = errors.New("must be one pattern or a JSON array of nonempty strings")
	errUser        = errors.New("must be UID:GID in numbers, for example 1000:1000")
	errNetwork     = errors.New("must be bridge, none, host, container:ID or the name of a network")
	errBoxNetwork  = errors.New("must be bridge or none")
	errCPUs        = errors.New("must be a number of CPUs of at least 0.01, for example 2 or 1.5")
	errEnvName     = errors.New("must be the name of an environment variable, without a value")
	errURL         = errors.New("must be an http or https URL")
	errEngine      = errors.New("must be an engine address, for example unix:///var/run/docker.sock")
	errName        = errors.New("must be a name of letters, digits, dot, hyphen and underscore")
	errImage       = errors.New("must be an image reference")
	errNames       = errors.New("must be a comma-separated list of names")
)

var (
	decimalShape  = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?|\.[0-9]+)$`)
	integerShape  = regexp.MustCompile(`^[0-9]+$`)
	viewportShape = regexp.MustCompile(`^[1-9][0-9]*x[1-9][0-9]*$`)
	nameShape     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
	imageShape    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:/@-]*$`)
	envNameShape  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	engineShape   = regexp.MustCompile(`^[a-z]+://[^\s]+$`)
)

// decimal reads a plain decimal number: no sign, exponent, hexadecimal,
// Infinity, white space or empty text.
func decimal(s string) (float64, bool) {
	if !decimalShape.MatchString(s) {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

// seconds reads a time of zero or more, to the millisecond.
func seconds(s string) (time.Duration, error) {
	f, ok := decimal(s)
	if !ok {
		return 0, errNonNegative
	}
	return toMillis(min(f, maxSeconds) * 1000), nil
}

// positiveSeconds never returns zero, which elsewhere means "off": what rounds
// to nothing becomes one millisecond.
func positiveSeconds(s string) (time.Duration, error) {
	f, ok := decimal(s)
	if !ok || f <= 0 {
		return 0, errPositive
	}
	return max(toMillis(min(f, maxSeconds)*1000), time.Millisecond), nil
}

func toMillis(ms float64) time.Duration {
	return time.Duration(math.Round(ms)) * time.Millisecond
}

func integer(s string, low, high int64) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if !integerShape.MatchString(s) || err != nil || n < low || n > high {
		return 0, fmt.Errorf("must be an integer from %d to %d", low, high)
	}
	return n, nil
}

// size reads bytes with an optional binary unit: 4g, 512m, 16777216.
func size(s string, low, high int64) (int64, error) {
	n, err := units.RAMInBytes(s)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("must be a size from %s to %s, for example 512m or 4g",
			units.BytesSize(float64(low)), units.BytesSize(float64(high)))
	}
	return n, nil
}

func cpus(s string) (int64, error) {
	f, ok := decimal(s)
	if !ok || f > maxCPUs || f*1e9 < minNanoCPUs {
		return 0, errCPUs
	}
	return int64(math.Round(f * 1e9)), nil
}

func boolean(s string) (bool, error) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errBool
}

func user(s string) (*User, error) {
	uid, gid, found := strings.Cut(s, ":")
	if !found || !integerShape.MatchString(uid) || !integerShape.MatchString(gid) {
		return nil, errUser
	}
	u, errU := strconv.ParseUint(uid, 10, 32)
	g, errG := strconv.ParseUint(gid, 10, 32)
	if errU != nil || errG != nil || u == noID || g == noID {
		return nil, errUser
	}
	return &User{UID: uint32(u), GID: uint32(g)}, nil
}

func browserNetwork(s string) (string, error) {
	if s != "bridge" && s != "none" {
		return "", errBoxNetwork
	}
	return s, nil
}

func network(s string) (string, error) {
	if !nameShape.MatchString(strings.TrimPrefix(s, "container:")) {
		return "", errNetwork
	}
	return s, nil
}

func baseURL(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return "", errURL
	}
	return s, nil
}

func logLevel(s string) (slog.Level, error) {
	names := []string{"debug", "info", "warn", "error"}
	levels := []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	if i := slices.Index(names, s); i >= 0 {
		return levels[i], nil
	}
	return 0, errors.New("must be debug, info, warn or error")
}

func notBlank(s string) (string, error) {
	if strings.TrimSpace(s) == "" {
		return "", errBlank
	}
	return s, nil
}

func viewport(s string) (string, error)  { return shaped(s, viewportShape, errViewport) }
func envName(s string) (string, error)   { return shaped(s, envNameShape, errEnvName) }
func engine(s string) (string, error)    { return shaped(s, engineShape, errEngine) }
func image(s string) (string, error)     { return shaped(s, imageShape, errImage) }
func plainName(s string) (string, error) { return shaped(s, nameShape, errName) }

func shaped(s string, shape *regexp.Regexp, problem error) (string, error) {
	if !shape.MatchString(s) {
		return "", problem
	}
	return s, nil
}

func appPort(s string) (int, error) {
	n, err := integer(s, 1, 65535)
	if err != nil {
		return 0, errAppPort
	}
	return int(n), nil
}

// modelNames reads a list of models and drops repetitions, because the list
// becomes an enum of a JSON schema, whose members must differ.
func modelNames(s string) ([]string, error) {
	var names []string
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			return nil, errNames
		}
		if !slices.Contains(names, part) {
			names = append(names, part)
		}
	}
	return names, nil
}

// Readers of a repeatable flag's environment variable.

func splitPaths(s string) ([]string, error) {
	return slices.DeleteFunc(filepath.SplitList(s), blank), nil
}

func splitCommas(s string) ([]string, error) {
	parts := strings.Split(s, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return slices.DeleteFunc(parts, blank), nil
}

func splitURLPatterns(s string) ([]string, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return nil, nil
	}
	if s[0] != '[' {
		return []string{s}, nil
	}
	var items []any
	if err := json.Unmarshal([]byte(s), &items); err != nil {
		return nil, errURLPatterns
	}
	patterns := make([]string, 0, len(items))
	for _, item := range items {
		p, ok := item.(string)
		if !ok || blank(p) {
			return nil, errURLPatterns
		}
		patterns = append(patterns, p)
	}
	return patterns, nil
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
