package oneshot

import (
	"bytes"
	"io"
	"regexp"
	"sync"
	"time"
)

// A CLI without a login may print where to log in, and wait: nobody will.

const (
	// promptSize is the most that a CLI prints, in bytes, when it asks for a login.
	promptSize = 8 << 10
	// LoginPatience is how long such a CLI may then be silent.
	LoginPatience = 10 * time.Second
)

// loginPage matches the address of a page to log in at, and loginWords what a CLI
// says beside it. A link in a warning has the one and not the other.
var (
	loginPage  = regexp.MustCompile(`(?i)https://\S*(oauth|authori[sz]e|log-?in|sign-?in|device|/auth)\S*`)
	loginWords = regexp.MustCompile(`(?i)\b(log ?in|sign ?in|authenticat|authori[sz]|(enter|paste|waiting for).*\bcode\b)`)
)

// asksForLogin reports whether a text names a page to log in at and asks for it.
func asksForLogin(text []byte) bool {
	return loginPage.Match(text) && loginWords.Match(loginPage.ReplaceAll(text, nil))
}

// loginPrompt watches what a command writes, from both of its streams.
type loginPrompt struct {
	patience time.Duration
	asked    chan struct{} // closed when the command asked and then waited

	mu    sync.Mutex
	seen  []byte // up to promptSize and one
	timer *time.Timer
	wrote int // pieces
	over  bool
}

// watchLogin watches for so long a silence; 0 means that nothing is watched.
func watchLogin(patience time.Duration) *loginPrompt {
	return &loginPrompt{patience: patience, asked: make(chan struct{})}
}

// of returns r, watched.
func (p *loginPrompt) of(r io.Reader) io.Reader {
	if p.patience <= 0 {
		return r
	}
	return io.TeeReader(r, p)
}

// Write takes what was read.
func (p *loginPrompt) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || len(bytes.TrimSpace(b)) == 0 {
		return len(b), nil
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	p.wrote++
	p.seen = append(p.seen, b[:min(len(b), promptSize+1-len(p.seen))]...)
	switch {
	case len(p.seen) > promptSize: // that is an answer
		p.over = true
	case asksForLogin(p.seen):
		last := p.wrote
		p.timer = time.AfterFunc(p.patience, func() { p.waited(last) })
	}
	return len(b), nil
}

// waited says that nothing came since the last piece, unless something just did.
func (p *loginPrompt) waited(last int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over && p.wrote == last {
		p.over = true
		close(p.asked)
	}
}

// stop ends the watching.
func (p *loginPrompt) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	if p.timer != nil {
		p.timer.Stop()
	}
}
