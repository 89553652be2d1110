package oneshot

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLoginPrompt(t *testing.T) {
	const page = "Visit https://accounts.example.com/o/oauth2/auth?x=1 to log in"
	for name, tt := range map[string]struct {
		pieces   []string // a second apart
		patience time.Duration
		want     time.Duration // after the start; 0: never
	}{
		"asks":                       {[]string{page}, 10 * time.Second, 10 * time.Second},
		"asks in two pieces":         {[]string{page[:30], page[30:]}, 10 * time.Second, 11 * time.Second},
		"another way":                {[]string{"Please sign in: https://claude.example/device"}, 10 * time.Second, 10 * time.Second},
		"blanks are no sign of life": {[]string{page, "\n", " "}, 10 * time.Second, 10 * time.Second},
		"dots are":                   {[]string{page, ".", "."}, 10 * time.Second, 12 * time.Second},
		"a warning with a link":      {[]string{"warning: deprecated, see https://example.com/device/auth"}, 10 * time.Second, 0},
		"no page":                    {[]string{"https://example.com/readme"}, 10 * time.Second, 0},
		"an answer that names one":   {[]string{page + strings.Repeat(" and more", 1000)}, 10 * time.Second, 0},
		"an answer follows":          {[]string{page, strings.Repeat("word ", 2000)}, 10 * time.Second, 0},
		"off":                        {[]string{page}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := watchLogin(tt.patience)
				defer p.stop()
				r, w := io.Pipe()
				go func() {
					for i, piece := range tt.pieces {
						if i > 0 {
							time.Sleep(time.Second) // of the bubble's clock
						}
						_, _ = io.WriteString(w, piece)
					}
				}()
				begin := time.Now()
				got := make([]byte, len(strings.Join(tt.pieces, "")))
				_, err := io.ReadFull(p.of(r), got)
				require.NoError(t, err)
				assert.Equal(t, strings.Join(tt.pieces, ""), string(got), "the stream is as it was")
				limit := time.After(time.Hour)
				select {
				case <-p.asked:
					assert.Equal(t, tt.want, time.Since(begin))
				case <-limit:
					assert.Zero(t, tt.want)
				}
			})
		})
	}
}
