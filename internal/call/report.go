package call

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode"
)

// redraw is how often the live line shows the time.
const redraw = time.Second

// clear goes to the begin of the terminal's line and empties it.
const clear = "\r\x1b[K"

// reporter writes what happens to stderr and to a log: lines, and on a terminal
// below them one live line with the time and the latest progress. It is also
// the server's stderr.
type reporter struct {
	mu     sync.Mutex
	w      io.Writer
	log    io.Writer // set before start
	width  int       // columns of the terminal; 0: none
	begin  time.Time
	latest string
	live   bool   // the live line is on the screen
	part   []byte // of the server's line
}

func newReporter(w io.Writer, width int, begin time.Time) *reporter {
	return &reporter{w: w, log: io.Discard, width: width, begin: begin}
}

// start shows the live line until the returned function is called, which must
// be. What is written later is plain lines.
func (r *reporter) start() (stop func()) {
	if r.width == 0 {
		return r.flush
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(redraw)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				r.mu.Lock()
				r.draw()
				r.mu.Unlock()
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-done
		r.flush()
	}
}

// flush ends the live line and writes what the server left without a line break.
func (r *reporter) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wipe()
	r.width = 0
	if len(r.part) > 0 {
		r.put(string(r.part) + "\n")
		r.part = nil
	}
}

// progress shows a progress message; one that repeats the last is not new.
func (r *reporter) progress(message string) {
	message = oneLine(message)
	r.mu.Lock()
	defer r.mu.Unlock()
	if message == "" || message == r.latest {
		return
	}
	r.latest = message
	text := fmt.Sprintf("%6.1fs  %s\n", time.Since(r.begin).Seconds(), message)
	_, _ = io.WriteString(r.log, text)
	if r.width > 0 {
		r.draw()
		return
	}
	_, _ = io.WriteString(r.w, text)
}

// line writes a line of text above the live line.
func (r *reporter) line(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(text + "\n")
}

func (r *reporter) put(text string) {
	_, _ = io.WriteString(r.log, text)
	r.wipe()
	_, _ = io.WriteString(r.w, text)
}

// fail writes an error and returns its exit status.
func (r *reporter) fail(err error) int {
	r.line("error: " + err.Error())
	var usage *UsageError
	if errors.As(err, &usage) {
		return StatusUsage
	}
	return StatusError
}

// Write takes the server's stderr, and passes on whole lines.
func (r *reporter) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.part = append(r.part, b...)
	if i := bytes.LastIndexByte(r.part, '\n'); i >= 0 {
		r.put(string(r.part[:i+1]))
		r.part = append([]byte(nil), r.part[i+1:]...)
	}
	if len(r.part) > 64<<10 { // a line without an end
		r.put(string(r.part) + "\n")
		r.part = nil
	}
	return len(b), nil
}

func (r *reporter) draw() {
	message := r.latest
	if message == "" {
		message = "starting"
	}
	text := []rune(fmt.Sprintf("%4.0fs  %s", time.Since(r.begin).Seconds(), message))
	if len(text) >= r.width {
		text = text[:r.width-1]
	}
	_, _ = io.WriteString(r.w, clear+string(text))
	r.live = true
}

func (r *reporter) wipe() {
	if r.live {
		_, _ = io.WriteString(r.w, clear)
		r.live = false
	}
}

// oneLine takes from a message what could break the line or drive a terminal.
func oneLine(s string) string {
	s = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return ' '
		}
		return c
	}, s)
	return strings.Join(strings.Fields(s), " ")
}
