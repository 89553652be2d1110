package codex

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// played is what a Progress sent, and when.
type played struct {
	sent []progressMessage
	when []time.Time
	late int // messages after the end
}

// play tells texts, with pauses in milliseconds after each, by a clock that runs
// in the caller's goroutine.
func play(texts []string, pauses []int) (out played) {
	type due struct {
		at   time.Time
		call func()
	}
	var timers []*due
	p := &progress{Spacing: time.Second, Silence: 10 * time.Second, Age: func() time.Duration { return 0 },
		After: func(d time.Duration, call func()) func() {
			mine := &due{time.Now().Add(d), call}
			timers = append(timers, mine)
			return func() { mine.call = func() {} }
		},
		Send: func(m progressMessage) { out.sent = append(out.sent, m); out.when = append(out.when, time.Now()) }}
	sleep := func(d time.Duration) {
		for end := time.Now().Add(d); ; {
			next := -1
			for i, o := range timers {
				if !o.at.After(end) && (next < 0 || o.at.Before(timers[next].at)) {
					next = i
				}
			}
			if next < 0 {
				time.Sleep(time.Until(end)) // of the bubble's clock
				return
			}
			o := timers[next]
			timers = slices.Delete(timers, next, next+1)
			time.Sleep(time.Until(o.at))
			o.call()
		}
	}
	p.Start(json.RawMessage(`"t"`))
	for i, text := range texts {
		p.Tell(text)
		sleep(time.Duration(pauses[i]) * time.Millisecond)
	}
	p.Stop()
	before := len(out.sent)
	sleep(time.Hour)
	out.late = len(out.sent) - before
	return out
}

// TestProgressProperties plays any events at any times: numbers rise, statuses
// keep their distance, silence is told, nothing comes after the end.
func TestProgressProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		texts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "", "c\x00\n"}), 1, 30).Draw(rt, "texts")
		pauses := rapid.SliceOfN(rapid.IntRange(0, 15000), len(texts), len(texts)).Draw(rt, "pauses")
		var out played
		synctest.Test(t, func(*testing.T) { out = play(texts, pauses) })
		require.Zero(rt, out.late)
		var last time.Time
		for i, m := range out.sent {
			require.Equal(rt, i+1, m.Progress)
			if i > 0 {
				require.LessOrEqual(rt, out.when[i].Sub(out.when[i-1]), 10*time.Second, "silence is told")
			}
			if strings.Contains(m.Message, "still running") {
				continue
			}
			require.True(rt, last.IsZero() || out.when[i].Sub(last) >= time.Second)
			last = out.when[i]
		}
	})
}

func TestValidToken(t *testing.T) {
	for raw, want := range map[string]bool{`"a"`: true, `""`: true, "0": true, "-1.5e3": true, "1e999": false, "null": false, "{}": false, "[]": false, "true": false, "": false, "Inf": false} {
		assert.Equal(t, want, validToken(json.RawMessage(raw)), raw)
	}
}
