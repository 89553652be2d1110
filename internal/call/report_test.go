package call

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPlainLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var screen, log bytes.Buffer
		r := newReporter(&screen, 0, time.Now())
		r.log = &log
		stop := r.start()
		time.Sleep(1500 * time.Millisecond)
		r.progress("Codex: started")
		r.progress("Codex: started")
		r.progress("a\x1b[2Jb\nc \t d")
		r.progress("")
		_, _ = r.Write([]byte("one\ntw"))
		_, _ = r.Write([]byte("o\nleft"))
		stop()
		r.line("end")
		want := "   1.5s  Codex: started\n   1.5s  a [2Jb c d\none\ntwo\nleft\nend\n"
		assert.Equal(t, want, screen.String())
		assert.Equal(t, want, log.String(), "the log holds the same")
	})
}

func TestLiveLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var screen, log bytes.Buffer
		r := newReporter(&screen, 24, time.Now())
		r.log = &log
		stop := r.start()
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		r.progress("Codex: running a long command")
		r.line("a line")
		time.Sleep(time.Second)
		synctest.Wait()
		stop()
		r.progress("late")
		assert.Equal(t, clear+"   1s  starting"+
			clear+"   1s  Codex: running a"+
			clear+"a line\n"+
			clear+"   2s  Codex: running a"+
			clear+"   2.1s  late\n", screen.String())
		assert.Equal(t, "   1.1s  Codex: running a long command\na line\n   2.1s  late\n", log.String(), "no control codes in the log")
	})
}

func TestALineWithoutAnEnd(t *testing.T) {
	var screen bytes.Buffer
	r := newReporter(&screen, 0, time.Now())
	for range 100 {
		_, _ = r.Write([]byte(strings.Repeat("x", 10_000)))
	}
	assert.Less(t, len(r.part), 80_000, "it is not kept for ever")
	assert.NotEmpty(t, screen.String())
}

func TestStatusOfErrors(t *testing.T) {
	var screen bytes.Buffer
	r := newReporter(&screen, 0, time.Now())
	assert.Equal(t, StatusError, r.fail(errors.New("x")))
	assert.Equal(t, StatusUsage, r.fail(errors.Join(usagef("y"))))
	assert.Equal(t, "error: x\nerror: y\n", screen.String())
}
