package control

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBrowserID(t *testing.T) {
	for address, want := range map[string]string{
		"ws://127.0.0.1:9222/devtools/browser/1b2c-3d": "1b2c-3d",
		"ws://[::1]:9222/devtools/browser/x":           "x",
		"ws://127.0.0.1:9222/devtools/browser/":        "",
		"ws://127.0.0.1:9222/devtools/browser/x/y":     "",
		"ws://127.0.0.1:9222/devtools/page/x":          "",
		"ws://127.0.0.1:9222/x/devtools/browser/x":     "",
		"ws://%zz/devtools/browser/x":                  "",
		"":                                             "",
	} {
		id, ok := BrowserID(address)
		require.Equal(t, want, id, address)
		require.Equal(t, want != "", ok, address)
	}
}

func FuzzBrowserID(f *testing.F) {
	f.Add("ws://127.0.0.1:9222/devtools/browser/1b2c-3d")
	f.Fuzz(func(t *testing.T, address string) {
		if id, ok := BrowserID(address); ok {
			require.NotEmpty(t, id)
			require.NotContains(t, id, "/")
		}
	})
}

func TestParseIdentity(t *testing.T) {
	for _, body := range []string{``, `null`, `[]`, `{}`, `{"webSocketDebuggerUrl":7}`, `{"webSocketDebuggerUrl":"ws://h/devtools/browser/"}`,
		`{"webSocketDebuggerUrl":"ws://h/devtools/page/x"}`, `{"webSocketDebuggerUrl":"ws://h/devtools/browser/a/b"}`, `{"webSocketDebuggerUrl":"ws://%zz"}`} {
		_, err := parseIdentity([]byte(body))
		assert.Error(t, err, body)
	}
}

func FuzzIdentity(f *testing.F) {
	for _, s := range []string{`{"webSocketDebuggerUrl":"ws://127.0.0.1:1/devtools/browser/abc-1"}`, `{}`, `{"webSocketDebuggerUrl":"a","webSocketDebuggerUrl":"b"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		id, err := parseIdentity(body)
		if err == nil {
			require.NotEmpty(t, id)
			require.NotContains(t, id, "/")
			require.True(t, json.Valid(body))
		}
	})
}
