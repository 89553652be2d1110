package docker

import (
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// An engine that was just started again may fail to remove a container whose
// files are still in use, and leave it "dead": the removal is tried again.
func TestRemovalIsTriedAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		answers []int // to the removals, the last one for ever
		asked   int32
	}{
		"at once":                  {[]int{204}, 1},
		"not there any more":       {[]int{404}, 1},
		"in use twice":             {[]int{500, 500, 204}, 3},
		"under way, then it fails": {[]int{409, 204}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			var removed atomic.Bool
			path := filepath.Join(t.TempDir(), "s")
			l, err := net.Listen("unix", path)
			require.NoError(t, err)
			serveOn(t, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method == http.MethodDelete:
					n := int(asked.Add(1))
					status := tt.answers[min(n, len(tt.answers))-1]
					removed.Store(status == 204 || status == 404)
					w.WriteHeader(status)
				case strings.HasSuffix(r.URL.Path, "/json") && removed.Load():
					w.WriteHeader(http.StatusNotFound)
				case strings.HasSuffix(r.URL.Path, "/json"):
					_, _ = w.Write([]byte(`{"Id":"id","State":{"Status":"dead"}}`))
				case strings.HasSuffix(r.URL.Path, "/wait"):
					w.WriteHeader(http.StatusInternalServerError)
				}
			}))
			e, err := dial(endpoint{host: "unix://" + path})
			require.NoError(t, err)
			defer e.Close()
			i := &instance{engine: e, id: "id"}
			require.NoError(t, i.Destroy(t.Context()))
			assert.Equal(t, tt.asked, asked.Load())
		})
	}
	t.Run("an engine that is gone ends it", func(t *testing.T) {
		e, err := dial(endpoint{host: "unix://" + filepath.Join(t.TempDir(), "none")})
		require.NoError(t, err)
		defer e.Close()
		err = (&instance{engine: e, id: "0123456789abcdef"}).Destroy(t.Context())
		require.ErrorContains(t, err, "container 0123456789ab is still there (remove it with `docker rm -f 0123456789ab`)")
	})
}

// The engine's client leaves a goroutine behind for each wait whose answer
// nobody takes.
func TestAwaitRemovalLeavesNoGoroutine(t *testing.T) {
	others := goleak.IgnoreCurrent() // connections that other tests keep
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	stop := serveOn(t, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		switch {
		case strings.HasSuffix(r.URL.Path, "/_ping"):
			return
		case strings.HasSuffix(r.URL.Path, "/wait"):
			_, _ = w.Write([]byte(`{"StatusCode":0}`))
			return
		}
		time.Sleep(10 * time.Millisecond) // so that the other answer comes first
		w.WriteHeader(http.StatusNotFound)
	}))
	e, err := dial(endpoint{host: "unix://" + path})
	require.NoError(t, err)
	for range 20 {
		require.NoError(t, (&instance{engine: e, id: "id"}).awaitRemoval(t.Context(), time.Second))
	}
	require.NoError(t, e.Close())
	stop()
	require.NoError(t, goleak.Find(others))
}
