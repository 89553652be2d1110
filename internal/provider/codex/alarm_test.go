package codex

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAlarms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAlarms()
		assert.Nil(t, a.next(), "nothing to wait for")
		var rung []string
		add := func(name string, d time.Duration) *alarm { return a.after(d, func() { rung = append(rung, name) }) }
		add("late", 3*time.Second)
		taken := add("taken back", 2*time.Second)
		add("early", time.Second)
		a.after(time.Second, func() { add("from a call", 0) })
		a.cancel(taken)
		a.cancel(taken)
		a.cancel(nil)
		start := time.Now()
		<-a.next()
		assert.Equal(t, time.Second, time.Since(start))
		a.ring()
		assert.ElementsMatch(t, []string{"early", "from a call"}, rung)
		<-a.next()
		a.ring()
		assert.Equal(t, 3*time.Second, time.Since(start))
		assert.Equal(t, "late", rung[2])
		assert.Nil(t, a.next())
	})
}
