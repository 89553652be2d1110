package proxy

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewClock()
		assert.Nil(t, a.Next(), "nothing to wait for")
		var rung []string
		add := func(name string, d time.Duration) *Alarm { return a.After(d, func() { rung = append(rung, name) }) }
		add("late", 3*time.Second)
		taken := add("taken back", 2*time.Second)
		add("early", time.Second)
		a.After(time.Second, func() { add("from a call", 0) })
		a.Cancel(taken)
		a.Cancel(taken)
		a.Cancel(nil)
		start := time.Now()
		<-a.Next()
		assert.Equal(t, time.Second, time.Since(start))
		a.Ring()
		assert.ElementsMatch(t, []string{"early", "from a call"}, rung)
		<-a.Next()
		a.Ring()
		assert.Equal(t, 3*time.Second, time.Since(start))
		assert.Equal(t, "late", rung[2])
		assert.Nil(t, a.Next())
	})
}
