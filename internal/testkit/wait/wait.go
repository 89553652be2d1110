// Package wait waits in tests for what the test cannot make happen at a known
// time: a process that ends, a container that goes, an answer of a program.
// There is one limit for all of it. How fast something happens is measured by
// the benchmarks and the fault table; a test that asserted it would fail on a
// busy machine.
package wait

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Limit bounds every wait. It is so long that only a hang reaches it, also on a
// machine with much else to do.
const Limit = 3 * time.Minute

// interval is the time between two looks at a condition of which nothing tells.
const interval = 5 * time.Millisecond

// Until looks at the condition until it holds. If it never does, the test fails.
func Until(t testing.TB, condition func() bool, msgAndArgs ...any) {
	t.Helper()
	for deadline := time.Now().Add(Limit); !condition(); time.Sleep(interval) {
		if time.Now().After(deadline) {
			require.FailNow(t, "the condition does not hold after "+Limit.String(), msgAndArgs...)
		}
	}
}

// Recv returns the next value of the channel, or its zero value once the
// channel is closed. If neither comes, the test fails.
func Recv[T any](t testing.TB, ch <-chan T, msgAndArgs ...any) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(Limit):
		require.FailNow(t, "nothing came within "+Limit.String(), msgAndArgs...)
		panic("unreachable")
	}
}
