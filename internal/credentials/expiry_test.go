package credentials

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// token is a JSON Web Token with these claims, signed by nobody.
func token(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("signature"))
}

// dated is chatgpt with an access token that ends at a time.
func dated(generation int, end time.Time) []byte {
	return fmt.Appendf(nil, `{"tokens":{"access_token":%q,"refresh_token":"refresh-%d","account_id":"account"}}`,
		token(fmt.Sprintf(`{"exp":%d,"generation":%d}`, end.Unix(), generation)), generation)
}

func TestTokenEnd(t *testing.T) {
	at := func(seconds int64, nanos int64) time.Time { return time.Unix(seconds, nanos) }
	encoded := base64.RawURLEncoding.EncodeToString
	tests := map[string]struct {
		token string
		want  time.Time // zero: none
	}{
		"whole seconds":         {token(`{"exp":1800000000}`), at(1800000000, 0)},
		"a fraction":            {token(`{"exp":1800000000.5}`), at(1800000000, 5e8)},
		"an exponent":           {token(`{"exp":1.8e9}`), at(1800000000, 0)},
		"the last second":       {token(`{"exp":253402300799}`), at(253402300799, 0)},
		"padded":                {"e30." + base64.URLEncoding.EncodeToString([]byte(`{"exp":1800000000}`)) + ".c2ln", at(1800000000, 0)},
		"no signature part":     {"e30." + encoded([]byte(`{"exp":1800000000}`)), time.Time{}},
		"a part too many":       {token(`{"exp":1800000000}`) + ".e30", time.Time{}},
		"empty":                 {"", time.Time{}},
		"dots":                  {"..", time.Time{}},
		"no base64":             {"e30.{}.c2ln", time.Time{}},
		"no JSON":               {token(`exp`), time.Time{}},
		"an array":              {token(`[1800000000]`), time.Time{}},
		"no exp":                {token(`{"iat":1800000000}`), time.Time{}},
		"exp is text":           {token(`{"exp":"1800000000"}`), time.Time{}},
		"exp is null":           {token(`{"exp":null}`), time.Time{}},
		"exp is zero":           {token(`{"exp":0}`), time.Time{}},
		"exp is negative":       {token(`{"exp":-1}`), time.Time{}},
		"exp in the year 10000": {token(`{"exp":253402300800}`), time.Time{}},
		"exp overflows":         {token(`{"exp":1e999}`), time.Time{}},
		"exp has many digits":   {token(`{"exp":` + strings.Repeat("9", 4000) + `}`), time.Time{}},
		"exp twice":             {token(`{"exp":1,"exp":1800000000}`), time.Time{}},
		"deep":                  {token(strings.Repeat(`{"exp":`, 100) + "1" + strings.Repeat("}", 100)), time.Time{}},
		"long":                  {token(`{"exp":1800000000,"a":"` + strings.Repeat("a", maxToken) + `"}`), time.Time{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := tokenEnd(tt.token)
			assert.Equal(t, !tt.want.IsZero(), ok)
			assert.True(t, tt.want.Equal(got), "got %s", got)
		})
	}
}

func TestExpires(t *testing.T) {
	good := token(`{"exp":1800000000}`)
	end := time.Unix(1800000000, 0)
	refreshed := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	claude := Source{Refresh: "claudeAiOauth.refreshToken", Expiry: []Expiry{{Member: "claudeAiOauth.expiresAt", Kind: Milliseconds}}}
	tests := map[string]struct {
		source Source
		doc    string
		want   time.Time
	}{
		"the token tells": {Codex(""), `{"tokens":{"access_token":"` + good + `","refresh_token":"r"},"last_refresh":"2026-01-02T03:04:05Z"}`, end},
		"the last refresh tells": {Codex(""), `{"tokens":{"access_token":"opaque","refresh_token":"r"},"last_refresh":"2026-01-02T03:04:05.123456789Z"}`,
			refreshed.Add(8*24*time.Hour + 123456789)},
		"nothing tells":          {Codex(""), `{"tokens":{"access_token":"opaque","refresh_token":"r"},"last_refresh":"yesterday"}`, time.Time{}},
		"last refresh a number":  {Codex(""), `{"tokens":{"refresh_token":"r"},"last_refresh":1800000000}`, time.Time{}},
		"access token a number":  {Codex(""), `{"tokens":{"access_token":1800000000,"refresh_token":"r"}}`, time.Time{}},
		"no refresh token":       {Codex(""), `{"tokens":{"access_token":"` + good + `","refresh_token":" "}}`, time.Time{}},
		"a key":                  {Codex(""), `{"OPENAI_API_KEY":"k","tokens":null,"last_refresh":"2026-01-02T03:04:05Z"}`, time.Time{}},
		"tokens of another kind": {Codex(""), `{"tokens":[{"access_token":"` + good + `"}]}`, time.Time{}},
		"milliseconds":           {claude, `{"claudeAiOauth":{"refreshToken":"r","expiresAt":1800000000250}}`, time.UnixMilli(1800000000250)},
		"milliseconds as text":   {claude, `{"claudeAiOauth":{"refreshToken":"r","expiresAt":"1800000000250"}}`, time.Time{}},
		"a source that is mute":  {Source{}, `{"tokens":{"refresh_token":"r"}}`, time.Time{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			doc, err := decodeObject([]byte(tt.doc))
			require.NoError(t, err)
			got := tt.source.expires(doc)
			assert.WithinDuration(t, tt.want, got, time.Millisecond)
			assert.Equal(t, tt.want.IsZero(), got.IsZero())
		})
	}
}

// FuzzTokenEnd reads claims, and with raw a whole token. What is read must be what the
// standard decoder reads, and a time that can be calculated with.
func FuzzTokenEnd(f *testing.F) {
	f.Add(`{"exp":1800000000}`, false)
	f.Add(`{"exp":1.8e9,"a":[{}]}`, false)
	f.Add(`{"exp":-1e400}`, false)
	f.Add(token(`{"exp":1}`), true)
	f.Add("e30.e30.", true)
	f.Fuzz(func(t *testing.T, input string, raw bool) {
		if !raw {
			input = token(input)
		}
		end, ok := tokenEnd(input)
		if !ok {
			require.True(t, end.IsZero())
			return
		}
		claims, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(strings.Split(strings.TrimSpace(input), ".")[1], "="))
		require.NoError(t, err)
		var doc struct {
			Exp float64 `json:"exp"`
		}
		// The standard decoder also takes "EXP" for exp, and the last of both.
		if json.Unmarshal(claims, &doc) == nil && strings.Count(strings.ToLower(string(claims)), "exp") == 1 {
			require.InDelta(t, doc.Exp, float64(end.Unix()), 1)
		}
		require.False(t, end.Before(time.Unix(0, 0)))
		require.False(t, end.After(time.Unix(lastSecond+1, 0)))
	})
}
