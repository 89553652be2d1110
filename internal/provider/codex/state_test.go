package codex

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestTransitions is the whole machine as text: state, input, place, next state
// and action. A pair that is not here changes nothing.
func TestTransitions(t *testing.T) {
	const want = `open answered settled deliver
open ended finishing awaitAnswer
open canceled canceling stopTurn
open deadline between settled expire
open deadline inline overdue awaitLine
finishing answered settled deliver
finishing grace between settled recoverAnswer
finishing grace inline lapsed watchLine
finishing deadline between settled recoverAnswer
finishing deadline inline finishing tearDown
finishing canceled between settled confirm
finishing canceled inline confirmed awaitLine
lapsed answered settled deliver
lapsed lineEnd settled recoverAnswer
lapsed deadline lapsed tearDown
lapsed canceled confirmed awaitLine
overdue answered settled deliver
overdue ended finishing awaitAnswer
overdue lineEnd settled expire
overdue canceled canceling stopTurn
overdue grace stuck awaitLine
stuck answered settled deliver
stuck ended finishing awaitAnswer
stuck lineEnd settled expire
stuck canceled canceling stopTurn
stuck grace stuck tearDown
canceling answered settled discard
canceling ended between settled confirm
canceling ended inline confirmed awaitLine
canceling grace between settled abandon
canceling grace inline unheard awaitLine
confirmed answered settled discard
confirmed lineEnd settled confirm
confirmed grace confirmed tearDown
unheard answered settled discard
unheard ended between settled confirm
unheard ended inline confirmed awaitLine
unheard lineEnd settled abandon
unheard grace unheard tearDown
`
	var got strings.Builder
	for _, r := range rules() {
		name := runtime.FuncForPC(reflect.ValueOf(r.act).Pointer()).Name()
		fmt.Fprintf(&got, "%s %s %s%s %s\n", r.in, r.on, [...]string{"", "between ", "inline "}[r.at], r.to, name[strings.LastIndexByte(name, '.')+1:])
	}
	assert.Equal(t, want, got.String())
	for s := open; s < settled; s++ {
		assert.NotNil(t, ruleFor(s, answered, false), "an answer settles every state: %s", s)
		assert.Equal(t, settled, ruleFor(s, answered, true).to)
	}
	for in := answered; in <= lineEnd; in++ {
		assert.Nil(t, ruleFor(settled, in, false), "nothing happens after the end")
	}
	seen := map[string]bool{}
	for _, r := range rules() {
		for _, mid := range []bool{false, true} {
			if r.at == anywhere || (r.at == inLine) == mid {
				key := fmt.Sprint(r.in, r.on, mid)
				assert.False(t, seen[key], "two rules for %s", key)
				seen[key] = true
			}
		}
	}
}
