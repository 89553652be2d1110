package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

	a = &attempt{TB: t}
	a.run(func() { a.Logf("fine") })
	assert.False(t, a.Failed())
}

func TestAttemptCleansUpWhateverFails(t *testing.T) {
	order := ""
	a := &attempt{TB: t}
	a.run(func() {
		a.Cleanup(func() { order += "first" })
		a.Cleanup(func() { order += "second, "; a.FailNow() })
		a.Cleanup(func() {
			a.Cleanup(func() { order += "from a clean-up, "; a.FailNow() })
			order += "last, "
		})
		a.FailNow()
	})
	assert.Equal(t, "last, from a clean-up, second, first", order)
	assert.True(t, a.Failed())
	assert.Equal(t, "it failed and did not say why", a.words())
}

// still is a stage of which only times are asked.
type still struct {
	Stage
	stretch int
	late    time.Duration
}

func (s still) Stretch() int        { return s.stretch }
func (s still) Late() time.Duration { return s.late }

func TestPatience(t *testing.T) {
	const free, slow = time.Millisecond, 90 * time.Millisecond
	tests := []struct {
		name      string
		fails     int           // plays, before one passes
		load      time.Duration // of the machine
		bridge    time.Duration // that a mark took through it
		before    int           // scenarios that were played again
		stretches []int         // of the plays
		failed    bool
	}{
		{"passes", 0, slow, slow, 0, []int{10}, false},
		{"fails on a free machine", 1, free, free, 0, []int{10}, true},
		{"fails on a free machine behind a slow bridge", 1, free, time.Second, 0, []int{10}, true},
		{"passes the second time", 1, slow, free, 0, []int{10, 40}, false},
		{"passes the third time", 2, slow, free, 0, []int{10, 40, 160}, false},
		{"fails three times", 3, slow, free, 0, []int{10, 40, 160}, true},
		{"the last that may be played again", 1, slow, free, most - 1, []int{10, 40}, false},
		{"one too many", 1, slow, free, most, []int{10}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			notes := filepath.Join(t.TempDir(), "notes")
			t.Setenv(NotesFile, notes)
			var stretches []int
			s := Scenario{Name: "s", play: func(t testing.TB, b *Bridge) {
				if len(stretches) <= tt.fails {
					require.Fail(t, "too late")
				}
			}}
			outer := &attempt{TB: t}
			p := &Patience{again: tt.before, measure: func() func() time.Duration { return func() time.Duration { return tt.load } }}
			outer.run(func() {
				p.Play(outer, s, func(_ testing.TB, s Settings) Stage {
					stage := still{stretch: max(10, s.Stretch), late: tt.bridge}
					stretches = append(stretches, stage.stretch)
					return stage
				})
			})
			assert.Equal(t, tt.stretches, stretches)
			assert.Equal(t, tt.failed, outer.Failed())
			if tt.failed {
				assert.Contains(t, outer.words(), "too late")
			}
			again := len(tt.stretches) - 1
			assert.Equal(t, again, strings.Count(outer.words(), "played again: "), outer.words())
			noted, _ := os.ReadFile(notes)
			assert.Equal(t, again, strings.Count(string(noted), t.Name()+": played again: "), string(noted))
			assert.Equal(t, again, strings.Count(string(noted), "\n"), "one line each")
			assert.Equal(t, again, strings.Count(string(noted), " late: too late "), string(noted))
		})
	}
}

func TestPatienceAfterAFailureWithoutAWord(t *testing.T) {
	plays := 0
	outer := &attempt{TB: t}
	p := &Patience{measure: func() func() time.Duration { return func() time.Duration { return time.Second } }}
	outer.run(func() {
		p.Play(outer, Scenario{play: func(t testing.TB, _ *Bridge) {
			if plays++; plays == 1 {
				t.Fail()
			}
		}}, func(testing.TB, Settings) Stage { return still{stretch: 10} })
	})
	assert.False(t, outer.Failed())
	assert.Equal(t, 2, plays)
	assert.Contains(t, outer.words(), "did not say why")
}

// A bridge that does not start has no excuse.
func TestPatienceWithoutAStage(t *testing.T) {
	plays := 0
	outer := &attempt{TB: t}
	p := &Patience{measure: func() func() time.Duration { return func() time.Duration { return time.Second } }}
	outer.run(func() {
		p.Play(outer, Scenario{}, func(t testing.TB, _ Settings) Stage { plays++; t.FailNow(); return nil })
	})
	assert.True(t, outer.Failed())
	assert.Equal(t, 1, plays)
	assert.Equal(t, "it failed and did not say why", outer.words())
}

func TestMeasure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stolen atomic.Int64 // by others
		stop := measureBy(func() time.Time { return time.Now().Add(time.Duration(stolen.Load())) })
		time.Sleep(time.Second)
		stolen.Add(int64(90 * time.Millisecond))
		time.Sleep(time.Second)
		stolen.Add(int64(30 * time.Millisecond))
		time.Sleep(time.Second)
		assert.Equal(t, 90*time.Millisecond, stop(), "the latest tick, not the last")
	})
	synctest.Test(t, func(t *testing.T) {
		stop := MeasureTicks()
		time.Sleep(time.Minute)
		assert.Zero(t, stop(), "a free machine")
	})
}
