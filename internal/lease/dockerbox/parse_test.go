package dockerbox

import (
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestBrowserID(t *testing.T) {
	for address, want := range map[string]string{
		"ws://127.0.0.1:9222/devtools/browser/1b2c-3d": "1b2c-3d",
		"ws://[::1]:9222/devtools/browser/x":           "x",
		"wss://127.0.0.1:9222/devtools/browser/x":      "",
		"http://127.0.0.1:9222/devtools/browser/x":     "",
		"ws://127.0.0.1:9222/devtools/browser/":        "",
		"ws://127.0.0.1:9222/devtools/browser/x/y":     "",
		"ws://127.0.0.1:9222/devtools/page/x":          "",
		"ws://127.0.0.1:9222/x/devtools/browser/x":     "",
		"ws://%zz/devtools/browser/x":                  "",
		"":                                             "",
	} {
		id, ok := browserID(address)
		require.Equal(t, want, id, address)
		require.Equal(t, want != "", ok, address)
	}
}

func FuzzBrowserID(f *testing.F) {
	f.Add("ws://127.0.0.1:9222/devtools/browser/1b2c-3d")
	f.Fuzz(func(t *testing.T, address string) {
		if id, ok := browserID(address); ok {
			require.NotEmpty(t, id)
			require.NotContains(t, id, "/")
		}
	})
}

// Chromium's stderr is hostile: lines are cut, never collected without bound.
func TestFollow(t *testing.T) {
	var got []string
	follow(iotest.OneByteReader(strings.NewReader("one\n\n"+strings.Repeat("x", 3*maxLine)+"\nlast")), func(line string) { got = append(got, line) })
	require.Equal(t, []string{"one", "", strings.Repeat("x", maxLine), "last"}, got)
}

func TestArguments(t *testing.T) {
	got := arguments(9333, "1440x900")
	require.Subset(t, got, []string{"--remote-debugging-port=9333", "--window-size=1440,900", "about:blank"})
	for _, never := range []string{"no-sandbox", "remote-allow-origins", "remote-debugging-address", "disable-web-security"} {
		require.NotContains(t, strings.Join(got, " "), never)
	}
}
