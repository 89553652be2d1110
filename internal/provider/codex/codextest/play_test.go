package codextest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A failed attempt ends as a failed test does, and the test that it stands for goes on.
func TestAttempt(t *testing.T) {
	order := ""
	a := &attempt{TB: t}
	a.run(func() {
		a.Cleanup(func() { order += "first" })
		a.Cleanup(func() { order += "last, " })
		assert.Equal(a, 1, 2)
		require.Equal(a, 3, 4)
		order = "went on"
	})
	assert.True(t, a.Failed())
	assert.Equal(t, "last, first", order, "clean-ups run backwards, and nothing behind a require")
	assert.Len(t, a.said, 2)
	assert.False(t, t.Failed())

	// A clean-up that ends the test keeps no other from running, and may ask for one.
	order = ""
	a = &attempt{TB: t}
	a.run(func() {
		a.Cleanup(func() { order += "first" })
		a.Cleanup(func() {
			a.Cleanup(func() { order += "asked for, " })
			order += "last, "
			a.FailNow()
		})
	})
	assert.Equal(t, "last, asked for, first", order)
	assert.True(t, a.Failed())
	assert.Equal(t, "it failed without a word", a.firstWords())
	a.Errorf(" %s\n", "why")
	assert.Equal(t, "why", a.firstWords())

	a = &attempt{TB: t}
	a.run(func() { a.Logf("fine") })
	assert.False(t, a.Failed())
}
