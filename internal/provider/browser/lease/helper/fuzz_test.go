package helper

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/provider/browser/lease"
)

const goodRecord = "noise\nrecord_version=1\nstate=ready\ngeneration=g 1\nlocal_cdp_port=$port\nbrowser_url=http://127.0.0.1:$port\nother=x=y\n"

var request = lease.Request{Session: "sess", LocalPort: 9222, Viewport: "800x600"}

func FuzzRecord(f *testing.F) {
	for _, s := range []string{goodRecord, "generation=", "generation=a\rgeneration=b", "=\n==\n", "a=b=c", "\xff=\x00"} {
		f.Add(strings.ReplaceAll(s, "$port", "9222"))
	}
	f.Fuzz(func(t *testing.T, text string) {
		rec, err := parseRecord([]byte(text), request)
		if err == nil {
			require.NotEmpty(t, rec.Generation)
			require.Equal(t, "http://127.0.0.1:9222", rec.BrowserURL)
			require.Contains(t, text, "browser_url=http://127.0.0.1:9222")
		}
		require.NotContains(t, rec.Generation, "\n")
		require.NotContains(t, rec.Generation, "\r")
	})
}

func FuzzPreflight(f *testing.F) {
	f.Add("GUI not verified: dev server not reachable", "x")
	f.Add("\xff", strings.Repeat("é", 3000))
	f.Fuzz(func(t *testing.T, stdout, stderr string) {
		e := unavailable(output{stdout: []byte(stdout), stderr: []byte(stderr), code: statusNone})
		require.Contains(t, e.Text, unverified)
	})
}
