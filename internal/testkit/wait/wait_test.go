package wait

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// failing notes that a test failed, and ends its goroutine as a test does.
type failing struct {
	testing.TB
	failed bool
}

func (f *failing) Errorf(string, ...any) { f.failed = true }
func (f *failing) Helper()               {}
func (f *failing) FailNow()              { panic(f) }

func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		Until(t, func() bool { return time.Since(begin) >= time.Minute })
		ch := make(chan int)
		go func() { ch <- 1; close(ch) }()
		require.Equal(t, 1, Recv(t, ch))
		require.Zero(t, Recv(t, ch), "a closed channel")
	})
}

func TestHangsFail(t *testing.T) {
	for name, hang := range map[string]func(testing.TB){
		"condition": func(t testing.TB) { Until(t, func() bool { return false }) },
		"channel":   func(t testing.TB) { Recv(t, make(chan int)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				f := &failing{TB: t}
				require.Panics(t, func() { hang(f) })
				require.True(t, f.failed)
				require.GreaterOrEqual(t, time.Since(begin), Limit)
			})
		})
	}
}
