package credentials

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// Expiry names a member of a credential that tells when the access token ends.
type Expiry struct {
	Member string // a dotted path
	Kind   ExpiryKind
	Life   time.Duration // of an access token, for Refreshed
}

// ExpiryKind is how a member tells the end of an access token.
type ExpiryKind int

const (
	// JWT: the member is the access token, a JSON Web Token with the claim exp (RFC 7519
	// section 4.1.4). Its signature is not checked: a forged end delays a spawn at worst.
	JWT ExpiryKind = iota
	// Milliseconds: the member is the end, as a number of milliseconds since 1970.
	Milliseconds
	// Refreshed: the member is the time of the last refresh (RFC 3339); Life adds to it.
	Refreshed
)

// maxToken bounds a token whose claims are read, in bytes; real ones have about 2 KiB.
const maxToken = 64 << 10

// expires is when the access token of doc ends, or zero if there is nothing to refresh or doc
// does not tell.
func (s Source) expires(doc map[string]any) time.Time {
	if s.Refresh == "" || blank(lookup(doc, strings.Split(s.Refresh, "."))) {
		return time.Time{}
	}
	for _, e := range s.Expiry {
		if end, ok := e.read(lookup(doc, strings.Split(e.Member, "."))); ok {
			return end
		}
	}
	return time.Time{}
}

func (e Expiry) read(value any) (time.Time, bool) {
	switch v := value.(type) {
	case json.Number:
		if e.Kind == Milliseconds {
			return sinceEpoch(v, 1e-3)
		}
	case string:
		switch e.Kind {
		case JWT:
			return tokenEnd(v)
		case Refreshed:
			at, err := time.Parse(time.RFC3339, strings.TrimSpace(v))
			return at.Add(e.Life), err == nil
		}
	}
	return time.Time{}, false
}

// tokenEnd reads the claim exp of a JSON Web Token.
func tokenEnd(token string) (time.Time, bool) {
	if len(token) > maxToken {
		return time.Time{}, false
	}
	parts := strings.Split(strings.TrimSpace(token), ".")
	if len(parts) != 3 {
		return time.Time{}, false
	}
	claims, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return time.Time{}, false
	}
	doc, err := decodeObject(claims)
	if err != nil {
		return time.Time{}, false
	}
	exp, ok := doc["exp"].(json.Number)
	if !ok {
		return time.Time{}, false
	}
	return sinceEpoch(exp, 1)
}

// lastSecond is the end of the year 9999, where RFC 3339 ends.
const lastSecond = 253402300799

// sinceEpoch is the time that a number of units (in seconds) since 1970 stands for. What is not in
// the years 1970 to 9999 is no time.
func sinceEpoch(n json.Number, unit float64) (time.Time, bool) {
	f, err := strconv.ParseFloat(n.String(), 64)
	seconds := f * unit
	if err != nil || !(seconds > 0 && seconds <= lastSecond) {
		return time.Time{}, false
	}
	whole := int64(seconds)
	return time.Unix(whole, int64((seconds-float64(whole))*1e9)), true
}
