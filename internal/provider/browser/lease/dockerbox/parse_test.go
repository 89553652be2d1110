package dockerbox

import (
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

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
